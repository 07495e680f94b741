// The filter and the order of a list: the server's query where the collection has one, else the page filters.
import { el, nextId } from './dom.js'

/** Collections with a query: the text property that is filtered, and the properties to order by. */
const QUERIES = {
  '/notes': { text: 'title', keys: ['title', 'rank'] },
  '/tasks': { text: 'status', keys: ['status', 'priority', 'done', 'dueAt', 'city'] },
}

/**
 * @param {() => string} path of the collection that is shown
 * @param {() => unknown} onChange is called when the user has changed the filter or the order
 */
export function createFilter(path, onChange) {
  const input = el('input', { id: nextId('filter'), type: 'search', autocomplete: 'off' })
  const order = el('select', { id: nextId('order') })
  const ordering = el('div', {}, el('label', { for: order.id }, 'Order'), order)
  let waiting
  input.addEventListener('input', () => {
    clearTimeout(waiting)
    waiting = setTimeout(onChange, 250)
  })
  order.addEventListener('change', onChange)
  offer()

  /** Offers what the collection can be filtered and ordered by. */
  function offer() {
    const query = QUERIES[path()]
    input.value = ''
    input.placeholder = query === undefined ? 'text that it has' : `${query.text} begins with`
    ordering.hidden = query === undefined
    const choices = (query?.keys ?? []).flatMap((key) => [
      [key, `${key}, ascending`],
      [`-${key}`, `${key}, descending`],
    ])
    order.replaceChildren(
      el('option', { value: '' }, 'as created'),
      ...choices.map(([value, text]) => el('option', { value }, text)),
    )
  }

  /**
   * What the user asks for now. A list that is made of it needs no other for the same text.
   * @returns the options of the client's `list`, and whether an item of its response is shown
   */
  function read() {
    clearTimeout(waiting)
    const text = input.value.trim().toLowerCase()
    const known = QUERIES[path()]
    if (known === undefined) {
      return { options: {}, text, matches: (item) => JSON.stringify(item).toLowerCase().includes(text) }
    }
    const options = {
      count: true,
      ...(input.value !== '' && { query: { [known.text]: { prefix: input.value } } }),
      ...(order.value !== '' && { sort: order.value }),
    }
    return { options, text, matches: () => true }
  }

  return { elements: [el('div', {}, el('label', { for: input.id }, 'Filter'), input), ordering], offer, read }
}
