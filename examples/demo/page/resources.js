// The resources of the demo: list, filter, read, create, change, remove, upload.
import { createResourceClient } from 'http-resource-service/client'
import { button, el, nextId } from './dom.js'
import { createFilter } from './filter.js'
import { createUploads } from './uploads.js'
import { createWire } from './wire.js'

const PAGE_SIZE = 5
const names = ['Ada', 'Grace', 'Radia', 'Barbara', 'Hedy', 'Katherine', 'Margaret', 'Frances']
let turn = 0
const nextName = () => names[turn++ % names.length]

/** The collections, each with an item to begin with. */
const COLLECTIONS = {
  '/users': () => {
    const name = nextName()
    return { name, email: `${name.toLowerCase()}@example.org` }
  },
  '/notes': () => ({ title: `A note of ${nextName()}`, rank: 1 }),
  '/tasks': () => ({ title: `A task of ${nextName()}`, status: 'open', priority: 1, done: false }),
  '/jobs': () => ({ name: 'Print the minutes', priority: 3 }),
  '/articles': () => ({ title: 'On engines', body: 'A first draft.' }),
  '/docs': undefined,
  '/uploads': undefined,
}

/**
 * @param {HTMLElement} host
 * @param {{ session: import('./session.js').Session, open: (path: string) => Promise<void> }} options
 *   `open` opens an item in both editors
 */
export function createResources(host, { session, open }) {
  const wire = createWire('Requests of the list')
  const client = createResourceClient('/api', {
    fetch: wire.fetch,
    headers: session.credentials,
    keyed: ['/notes', '/tasks'],
  })
  const collection = el(
    'select',
    { id: nextId('collection') },
    ...Object.keys(COLLECTIONS).map((path) => el('option', { value: path }, path)),
  )
  const filter = createFilter(() => collection.value, listAgain)
  const token = el('input', {
    id: nextId('token'),
    type: 'password',
    placeholder: 'printed at start',
    autocomplete: 'off',
  })
  const list = el('ul', { class: 'items', role: 'list' })
  const status = el('p', { class: 'note', role: 'status' })
  const more = button('More', () => showNext())
  const detail = el('div', { class: 'detail' })
  const draft = el('textarea', { id: nextId('draft'), rows: '4', spellcheck: 'false' })
  const creation = el(
    'div',
    {},
    el('label', { for: draft.id }, 'New item, as JSON'),
    draft,
    el('div', { class: 'actions' }, button('Create', create)),
  )
  const uploads = createUploads({ client, session, path: () => collection.value, done: show })
  let pages
  let asked
  let isRefused = false
  let shown = 0

  host.append(
    el(
      'div',
      { class: 'pair' },
      el('div', {}, el('label', { for: collection.id }, 'Collection'), collection),
      ...filter.elements,
    ),
    list,
    el('div', { class: 'actions' }, more, button('List again', listAgain)),
    status,
    detail,
    creation,
    uploads.element,
    el(
      'details',
      {},
      el('summary', {}, 'Sign in for tasks, and to remove'),
      // A form, as password managers expect it; there is nothing to submit.
      el(
        'form',
        { onsubmit: (event) => event.preventDefault() },
        el('label', { for: token.id }, 'Bearer token'),
        token,
      ),
    ),
    el('h3', {}, 'On the wire'),
    wire.list,
  )
  collection.addEventListener('change', () => {
    filter.offer()
    return listAgain()
  })
  // What is shown stays: only a list that was refused is read again.
  token.addEventListener('change', () => isRefused && listAgain())

  function listAgain() {
    wire.begin()
    return refresh()
  }

  /** Starts at the first page. */
  async function refresh() {
    const template = COLLECTIONS[collection.value]
    creation.hidden = template === undefined
    uploads.element.hidden = template !== undefined
    if (template !== undefined) draft.value = JSON.stringify(template(), null, 2)
    uploads.reset()
    detail.replaceChildren()
    list.replaceChildren()
    shown = 0
    asked = filter.read()
    pages = client.list(collection.value, { limit: PAGE_SIZE, ...asked.options }).pages()
    await showNext()
  }

  /** Reads on until a page is full of items that the filter lets through. */
  async function showNext() {
    const source = pages
    const found = []
    let page
    let isEnd = false
    while (found.length < PAGE_SIZE && !isEnd) {
      const next = await attempt(() => source.next(), { done: false, value: { ok: false } })
      // Another list has been asked for meanwhile.
      if (source !== pages) return
      page = next.value ?? page
      isEnd = next.done || !page.ok || page.items.length < PAGE_SIZE
      if (!next.done && page.ok) found.push(...page.items.filter(asked.matches))
    }
    list.append(...found.map(describeItem))
    shown += found.length
    more.hidden = isEnd || shown === page?.total
    isRefused = page?.ok === false
    // A request without a response has said so.
    if (isRefused) return page.problem && say(page)
    if (shown === 0) status.textContent = asked.text === '' ? 'Nothing here yet.' : 'Nothing has this text.'
    else if (page?.total !== undefined) status.textContent = `${shown} of ${page.total} shown.`
    else status.textContent = `${shown} shown${isEnd ? '' : ', there may be more'}.`
  }

  function describeItem(item) {
    const { id, name, title, size, type } = item
    const path = `${collection.value}/${id}`
    const text = name ?? title ?? (size === undefined ? '' : `${type}, ${size} bytes`)
    const content = el('span', {}, el('code', {}, `/${id}`), ` ${text}`)
    return el(
      'li',
      {},
      button(content, () => read(path), { class: 'item' }),
    )
  }

  async function read(path) {
    wire.begin()
    if (collection.value === '/docs') return uploads.showContent(path, detail)
    const result = await attempt(() => client.read(path))
    if (result === undefined) return
    if (!result.ok) return say(result)
    const { document } = result
    detail.replaceChildren(
      el('h3', {}, path),
      el('p', { class: 'dim' }, 'ETag ', el('code', { class: 'tag' }, document.entityTag ?? 'none')),
      el('pre', { tabindex: '0' }, JSON.stringify(document.value, null, 2)),
      el(
        'div',
        { class: 'actions' },
        collection.value !== '/uploads' && button('Edit in both editors', () => open(path)),
        button('Remove', () => remove(document, path)),
      ),
    )
  }

  /** Removes the state that was read: 412 where it is another one by now. */
  async function remove(document, path) {
    wire.begin()
    const result = await attempt(() => client.remove(document))
    if (result === undefined) return
    if (!result.ok) say(result)
    else await show(`${result.status}: ${path} is removed.`)
  }

  async function create() {
    let value
    try {
      value = JSON.parse(draft.value)
    } catch (error) {
      status.textContent = `This is not JSON: ${error.message}`
      return
    }
    wire.begin()
    const result = await attempt(() => client.create(collection.value, value))
    if (result === undefined) return
    if (!result.ok) say(result)
    else await show(`201: ${new URL(result.url).pathname}`)
  }

  async function show(text) {
    await refresh()
    status.textContent = text
  }

  function say({ status: code, problem }) {
    if (code === 401) {
      status.textContent = '401: this needs the token that was printed at start. Sign in below.'
      return
    }
    const faults = (problem.errors ?? []).map(({ pointer, detail }) => `${pointer} ${detail}`)
    status.textContent = [`${code}: ${problem.detail ?? problem.title ?? 'refused'}`, ...faults].join(' ')
  }

  async function attempt(work, otherwise) {
    try {
      return await work()
    } catch (error) {
      status.textContent = String(error.message ?? error)
      return otherwise
    }
  }

  return { refresh, token: () => token.value.trim() }
}
