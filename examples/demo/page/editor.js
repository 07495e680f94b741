// An editor: one of two that have read the same document.
import { createResourceClient, merge } from 'http-resource-service/client'
import { button, el } from './dom.js'
import { createForm } from './form.js'
import { askForChoice, compare, showMerge } from './merge-view.js'
import { createWire } from './wire.js'

/**
 * @param {HTMLElement} host the element to fill
 * @param {{ name: string, other: string, session: import('./session.js').Session }} options
 */
export function createEditor(host, { name, other, session }) {
  // The client never sends a change without a condition: "Without If-Match" takes it off on its way.
  const wire = createWire(`Requests of ${name}`, () => (session.isCareless() ? ['If-Match'] : []))
  const client = createResourceClient('/api', { fetch: wire.fetch, headers: session.credentials, maxAttempts: 100 })
  const form = createForm(name, () => showState())
  const tag = el('code', { class: 'tag' }, '…')
  const state = el('span', { class: 'state' })
  const outcome = el('div', { class: 'outcome', 'aria-live': 'polite' })
  const pane = { name, client, form, load, save, refresh: showState, document: undefined, choice: undefined }
  const saveButton = button(`Save as ${name}`, save, { class: 'primary' })

  host.append(
    el('header', {}, el('h3', {}, name), state, el('p', { class: 'read' }, 'has read ', tag)),
    form.element,
    el('div', { class: 'actions' }, saveButton, button('Read again', load)),
    outcome,
    el('h4', {}, 'On the wire'),
    wire.list,
  )
  host.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && event.target.matches('.fields input')) saveButton.click()
  })

  /** Reads the document. A change that is not saved is given up. */
  async function load() {
    pane.choice?.withdraw()
    wire.begin()
    outcome.replaceChildren()
    const result = await attempt(() => client.read(session.path()))
    if (result?.ok) accept(result.document)
  }

  function accept(document) {
    pane.document = document
    session.note(document)
    form.fill(document.value)
    form.showFaults([])
    tag.textContent = document.entityTag ?? 'no tag'
    session.refresh()
  }

  function showState() {
    const changed = form.changes().length
    const isBehind = pane.document !== undefined && pane.document.entityTag !== session.latest()?.entityTag
    state.textContent = isBehind ? `${other} has saved since` : changed > 0 ? 'not saved' : 'up to date'
    state.className = `state ${isBehind ? 'behind' : changed > 0 ? 'changed' : ''}`
  }

  /** @returns once the change is saved, refused or given up */
  async function save() {
    if (pane.choice !== undefined || pane.document === undefined) return
    outcome.replaceChildren()
    form.showFaults([])
    wire.begin()
    const { document } = pane
    const mine = form.read()
    await attempt(() => (session.isCareless() ? overwrite(document, mine) : edit(document, mine)))
  }

  /** Saves with If-Match. When the other editor was faster, the function is called with the document as it is then. */
  async function edit(document, mine) {
    const base = document.value
    let isFirst = true
    let isMerged = false
    let isGivenUp = false
    const result = await client.edit(document, async (current) => {
      if (isFirst) {
        isFirst = false
        return mine
      }
      const rows = compare(base, mine, current)
      const { value, conflicts } = merge(base, mine, current)
      isMerged = true
      if (conflicts.length === 0) {
        outcome.replaceChildren(showMerge(rows, { mine: name, theirs: other }))
        return value
      }
      const choice = await choose(rows)
      isGivenUp = choice === undefined
      for (const property of choice ?? []) value[property] = mine[property]
      return isGivenUp ? current : value
    })
    if (isGivenUp) return
    if (!result.ok) return refuse(result)
    session.count('saved')
    if (isMerged) session.count('merged')
    else say('Saved.', 'good')
    accept(result.document)
  }

  async function choose(rows) {
    pane.choice = askForChoice(rows, { mine: name, theirs: other })
    outcome.replaceChildren(pane.choice.element)
    pane.choice.element.scrollIntoView({ block: 'nearest' })
    try {
      return await pane.choice.chosen
    } finally {
      pane.choice = undefined
      outcome.replaceChildren()
    }
  }

  /** Sends the whole document without a condition, as a page does that knows nothing of tags. */
  async function overwrite(document, mine) {
    const result = await client.replace(document, mine)
    if (!result.ok) return refuse(result)
    const latest = session.latest().value
    session.count('saved')
    // Changes that this editor has never seen, and that are gone.
    const rows = compare(document.value, mine, latest)
    const lost = rows.filter(({ name, by, theirs }) => by.includes('theirs') && !isSame(theirs, mine[name]))
    if (lost.length > 0) {
      session.count('lost', lost.length)
      const what = lost.map(({ name, theirs, mine }) => `${name}: “${theirs}” is “${mine}” again`).join(', ')
      outcome.replaceChildren(
        el('p', { class: 'lost' }, el('b', {}, `Lost ${other}’s edit. `), `${what}. The answer was 2xx.`),
      )
    } else say('Saved.', 'good')
    accept(result.document)
  }

  function refuse({ status, problem }) {
    form.showFaults(problem.errors ?? [])
    say(`${status}: ${problem.detail ?? problem.title ?? 'refused'}`, 'refused')
  }

  const say = (text, kind = 'dim') => outcome.replaceChildren(el('p', { class: kind }, text))

  async function attempt(work) {
    try {
      return await work()
    } catch (error) {
      say(String(error.message ?? error), 'refused')
    }
  }

  return pane
}

const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b)
