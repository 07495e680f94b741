// What the tests do inside the page; evaluated there before its own script.
globalThis.inPage = (() => {
  const pick = (values) => values[Math.floor(Math.random() * values.length)]

  /** Types into a random property, saves, and chooses at random where there is a conflict. */
  async function edit(pane, number) {
    const host = document.getElementById(pane)
    const name = pick(['title', 'place', 'edits'])
    const input = host.querySelector(`[data-name="${name}"]`)
    const value = name === 'edits' ? number : `${pane} ${number}`
    input.value = String(value)
    input.dispatchEvent(new Event('input'))
    const save = [...host.querySelectorAll('button')].find(({ textContent }) => textContent.startsWith('Save as'))
    save.click()
    let isWithdrawn = false
    while (save.getAttribute('aria-disabled') === 'true') {
      const conflict = host.querySelector('.conflict')
      if (conflict !== null) {
        const side = pick(['mine', 'theirs'])
        isWithdrawn = side === 'theirs'
        conflict.querySelector(`input[value=${side}]`).click()
        conflict.querySelector('button').click()
      }
      await new Promise((resolve) => setTimeout(resolve))
    }
    return { pane, name, value, isWithdrawn }
  }

  async function editOften(pane, number, times) {
    const edits = []
    for (let i = 0; i < times; i++) edits.push(await edit(pane, number + i))
    return edits
  }

  return {
    async editInBoth(times) {
      return (await Promise.all([editOften('ada', 1000, times), editOften('grace', 2000, times)])).flat()
    },

    async editInTurn(times) {
      const edits = []
      for (let i = 0; i < times; i++) edits.push(await edit(pick(['ada', 'grace']), 5000 + i))
      return edits
    },

    colorOf: (selector) => getComputedStyle(document.querySelector(selector)).color,

    /** Calls a function with each value that the bar of progress has. */
    watchProgress(see) {
      const progress = document.querySelector('progress')
      new MutationObserver(() => see(progress.value)).observe(progress, { attributes: true })
    },

    /** The element that has the focus; `undefined` when it has left the page. */
    describeFocus() {
      const element = document.activeElement
      if (element === document.body) return undefined
      const { outlineStyle, outlineWidth } = getComputedStyle(element)
      const name = element.getAttribute('aria-label') ?? (element.textContent || element.id)
      return { name: name.trim(), outline: `${outlineStyle} ${outlineWidth}` }
    },

    /** Elements and their parts that move. */
    findMotion: () =>
      [...document.querySelectorAll('*')].flatMap((element) =>
        [undefined, '::before', '::after'].filter((part) => {
          const { transitionDuration, animationName } = getComputedStyle(element, part)
          return transitionDuration !== '0s' || animationName !== 'none'
        }),
      ),

    widthOf: () => document.documentElement.scrollWidth,

    /** What all rules of axe find, the best practices too; axe is evaluated in the page before. */
    async findFaults() {
      const { violations } = await globalThis.axe.run()
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
      )
    },

    addFault: () => document.body.append(document.createElement('img')),
  }
})()
