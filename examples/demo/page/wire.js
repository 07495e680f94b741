// The wire: every request and response of a client, as they were sent.
import { el } from './dom.js'

const MAX_ENTRIES = 30
/** Fields of requests and responses that concern states, ranges and keys. */
const CONDITIONAL =
  /^(?:if-.*|etag|range|content-range|idempotency-.*|origin|access-control-(?:request|allow)-(?:method|headers|origin)s?)$/i
/** Fields that every response has. */
const USUAL =
  /^(?:date|connection|keep-alive|vary|cache-control|x-content-type-options|accept|accept-ranges|content-length|x-powered-by)$/i
const REASON = 'demo-reason'

/**
 * Makes a list of requests and the `fetch` that fills it.
 * @param {string} label for those who do not see the list
 * @param {() => readonly string[]} [omit] names of request fields to leave out at this moment
 */
export function createWire(label, omit = () => []) {
  const past = el('ol', { role: 'list' })
  const earlier = el('summary', {})
  const before = el('li', { hidden: true }, el('details', {}, earlier, past))
  const empty = el('li', { class: 'empty' }, 'No request yet.')
  const list = el('ol', { class: 'wire', role: 'list', tabindex: '0', 'aria-label': label }, before, empty)
  let isNew = false
  let passed = 0

  const entries = () => [...list.children].filter((child) => child.classList.contains('entry'))

  /** Shows an exchange that is over. */
  function add(exchange) {
    empty.remove()
    const gone = isNew ? entries() : entries().slice(0, -MAX_ENTRIES)
    isNew = false
    past.append(...gone)
    while (past.children.length > MAX_ENTRIES) past.firstElementChild.remove()
    passed += gone.length
    before.hidden = passed === 0
    earlier.textContent = `${passed} earlier`
    list.append(describe(exchange))
  }

  /** What follows belongs together; what is there is put away. */
  function begin() {
    isNew = true
  }

  /** The option `fetch` of the client. */
  async function recordingFetch(url, options) {
    const omitted = Object.entries(options.headers).filter(([name]) => omit().includes(name))
    const headers = { ...options.headers }
    for (const [name] of omitted) delete headers[name]
    const sent = { method: options.method, url: new URL(url).pathname + new URL(url).search, headers, omitted }
    const body = typeof options.body === 'string' ? options.body : undefined
    try {
      // `omit`: at a 401 the browser would otherwise ask for a password itself.
      const response = await fetch(url, { ...options, credentials: 'omit', headers: { ...headers, [REASON]: '1' } })
      const isJson = /json/.test(response.headers.get('content-type') ?? '')
      const text = isJson && response.status !== 304 ? await response.clone().text() : ''
      add({
        ...sent,
        body,
        status: response.status,
        statusText: response.statusText,
        fields: [...response.headers],
        text,
      })
      return response
    } catch (error) {
      if (error.name !== 'AbortError') add({ ...sent, body, status: 0, statusText: 'no answer', fields: [], text: '' })
      throw error
    }
  }

  return { list, add, begin, fetch: recordingFetch }
}

function describe({ method, url, headers, omitted = [], body, status, statusText, fields, text = '' }) {
  const reason = fields.find(([name]) => name === REASON)?.[1]
  const received = fields.filter(([name]) => name !== REASON)
  const rest = received.filter(([name]) => USUAL.test(name))
  return el(
    'li',
    { class: 'entry' },
    el('div', { class: 'line start' }, el('b', {}, method), ` ${url} `, el('span', { class: 'dim' }, 'HTTP/1.1')),
    ...Object.entries(headers).map(([name, value]) => field(name, hide(name, value))),
    ...omitted.map(([name, value]) =>
      el('div', { class: 'line omitted' }, el('s', {}, `${name}: ${value}`), el('span', {}, ' left out')),
    ),
    body !== undefined && el('div', { class: 'line content' }, shorten(body)),
    el(
      'div',
      { class: `line start status s${String(status)[0]}` },
      el('span', { class: 'dim' }, status === 0 ? '' : 'HTTP/1.1 '),
      el('b', {}, `${status || ''} ${statusText}`.trim()),
    ),
    ...received.filter((entry) => !rest.includes(entry)).map(([name, value]) => field(name, value)),
    text !== '' && el('div', { class: 'line content' }, shorten(text)),
    reason !== undefined && el('div', { class: 'line reason' }, `explain: ${reason}`),
    rest.length > 0 &&
      el(
        'details',
        {},
        el('summary', {}, `${rest.length} more fields`),
        ...rest.map(([name, value]) => field(name, value)),
      ),
  )
}

function field(name, value) {
  const title = name
    .replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase())
    .replace(/^Etag$|^Www(?=-)/, (start) => (start === 'Etag' ? 'ETag' : 'WWW'))
  const line = el('div', { class: 'line' }, el('span', { class: 'name' }, `${title}:`), ` ${value}`)
  return CONDITIONAL.test(name) ? el('div', { class: 'conditional' }, line) : line
}

/** A token does not belong on a screen. */
const hide = (name, value) => (name.toLowerCase() === 'authorization' ? value.replace(/(.{12}).*/, '$1…') : value)

const shorten = (text) => (text.length > 240 ? `${text.slice(0, 240)}…` : text)
