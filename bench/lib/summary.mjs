// What windows say: medians, the fastest tenth, their spread, and ratios to one peer.

const quantile = (sorted, q) => {
  const at = (sorted.length - 1) * q
  const low = Math.floor(at)
  return sorted[low] + (sorted[Math.ceil(at)] - sorted[low]) * (at - low)
}
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
const ascending = (values) => values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b)

/**
 * @param {{ peer: string, samples: { us: number }[] }[]} runs windows that were taken in turn
 * @param {string} base the peer that ratios are given to
 */
export function summarize(runs, base) {
  const reference = runs.find(({ peer }) => peer === base) ?? runs[0]
  const fastestOf = (run) => {
    const sorted = ascending(run.samples.map(({ us }) => us))
    return mean(sorted.slice(0, Math.max(1, Math.round(sorted.length / 10))))
  }
  return Object.fromEntries(
    runs.map((run) => {
      const sorted = ascending(run.samples.map(({ us }) => us))
      const ratios = ascending(run.samples.map(({ us }, round) => reference.samples[round].us / us))
      return [
        run.peer,
        {
          median: quantile(sorted, 0.5),
          lower: quantile(sorted, 0.25),
          upper: quantile(sorted, 0.75),
          fastest: fastestOf(run),
          ratio: quantile(ratios, 0.5),
          ratioLower: quantile(ratios, 0.25),
          ratioUpper: quantile(ratios, 0.75),
          fastestRatio: fastestOf(reference) / fastestOf(run),
        },
      ]
    }),
  )
}
