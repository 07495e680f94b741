// What both editors share: the document they edit, what was counted, and whether they are careful.

/** @typedef {ReturnType<typeof createSession>} Session */

/** @param {{ careless: HTMLInputElement, counts: Record<'saved' | 'merged' | 'lost', HTMLElement>, token: () => string }} parts */
export function createSession({ careless, counts, token }) {
  let path = '/plan'
  let latest
  const totals = { saved: 0, merged: 0, lost: 0 }
  const panes = []

  return {
    panes,
    path: () => path,
    isCareless: () => careless.checked,
    credentials: () => (token() === '' ? {} : { Authorization: `Bearer ${token()}` }),
    /** The newest state that this page knows of. */
    latest: () => latest,
    note(document) {
      latest = document
    },
    refresh() {
      for (const pane of panes) pane.refresh()
    },
    count(name, number = 1) {
      totals[name] += number
      counts[name].textContent = String(totals[name])
      counts.lost.parentElement.classList.toggle('alarm', totals.lost > 0)
    },
    /** Opens another document in both editors. */
    async open(next) {
      path = next
      await Promise.all(panes.map((pane) => pane.load()))
    },
  }
}
