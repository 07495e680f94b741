// A form for a JSON object: one input for each property.
import { el, nextId } from './dom.js'

/**
 * @param {string} owner whose form it is, for the labels
 * @param {() => void} onChange is called when the user has changed something
 */
export function createForm(owner, onChange) {
  const element = el('div', { class: 'fields' })
  let inputs = new Map()
  let shown = {}

  /** Shows a document. What the user is typing in is kept in the focus. */
  function fill(value) {
    const active = [...inputs].find(([, input]) => input === document.activeElement)?.[0]
    shown = value
    inputs = new Map()
    element.replaceChildren(
      ...Object.entries(value)
        .filter(([name]) => name !== 'id')
        .map(([name, member]) => createField(name, member)),
    )
    if (active !== undefined) inputs.get(active)?.focus()
    mark()
  }

  function createField(name, member) {
    const id = nextId('field')
    const type = typeof member === 'boolean' ? 'checkbox' : typeof member === 'number' ? 'number' : 'text'
    const input = el('input', {
      id,
      type,
      step: type === 'number' && 'any',
      autocomplete: 'off',
      'aria-describedby': `${id}-fault`,
    })
    input.dataset.name = name
    if (type === 'checkbox') input.checked = member
    else input.value = typeof member === 'object' ? JSON.stringify(member) : member
    input.addEventListener('input', () => {
      mark()
      onChange()
    })
    inputs.set(name, input)
    return el(
      'div',
      { class: 'field' },
      el('label', { for: id }, el('span', { class: 'hidden' }, `${owner}: `), name),
      input,
      el('p', { class: 'fault', id: `${id}-fault` }),
    )
  }

  /** The document as the user has left it. Text that is not JSON stays text. */
  function read() {
    const value = { ...shown }
    for (const [name, input] of inputs) value[name] = readInput(input, shown[name])
    return value
  }

  /** Names of the properties that the user has changed. */
  const changes = () =>
    [...inputs]
      .filter(([name, input]) => JSON.stringify(readInput(input, shown[name])) !== JSON.stringify(shown[name]))
      .map(([name]) => name)

  function mark() {
    const changed = changes()
    for (const [name, input] of inputs) input.parentElement.classList.toggle('changed', changed.includes(name))
  }

  /** Puts a value into an input, as if it had been typed. */
  function type(name, member) {
    const input = inputs.get(name)
    if (input.type === 'checkbox') input.checked = member
    else input.value = member
    input.dispatchEvent(new Event('input'))
  }

  /** Shows the faults that the server has found (422), each at its property. */
  function showFaults(errors) {
    for (const [name, input] of inputs) {
      const fault = errors.find(({ pointer }) => pointer === `/${name}` || pointer?.startsWith(`/${name}/`))
      input.toggleAttribute('aria-invalid', fault !== undefined)
      input.parentElement.querySelector('.fault').textContent = fault?.detail ?? ''
    }
  }

  return { element, fill, read, changes, type, showFaults }
}

function readInput(input, before) {
  if (input.type === 'checkbox') return input.checked
  if (typeof before === 'number') return Number.isNaN(input.valueAsNumber) ? null : input.valueAsNumber
  if (typeof before === 'string') return input.value
  try {
    return JSON.parse(input.value)
  } catch {
    return input.value
  }
}
