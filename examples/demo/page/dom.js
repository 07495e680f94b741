/**
 * Makes an element. Content is always text: nothing that is stored becomes markup.
 * @param {string} tag
 * @param {Record<string, unknown>} [properties] attributes; `onclick` and the like are listeners
 * @param {...(Node | string | undefined | false)} children
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children.filter((child) => child !== undefined && child !== false))
  return element
}

export const byId = (id) => document.getElementById(id)

/** A button that cannot be pressed again while its work is under way, and keeps the focus meanwhile. */
export function button(label, work, properties = {}) {
  const element = el('button', { type: 'button', ...properties }, label)
  onPress(element, work)
  return element
}

export function onPress(element, work) {
  element.addEventListener('click', async () => {
    if (element.getAttribute('aria-disabled') === 'true') return
    element.setAttribute('aria-disabled', 'true')
    try {
      await work()
    } finally {
      element.removeAttribute('aria-disabled')
    }
  })
}

let count = 0
export const nextId = (name) => `${name}-${++count}`

/** A value as it stands in a table: text as it is, everything else as JSON. */
export const show = (value) =>
  value === undefined ? 'absent' : typeof value === 'string' ? value : JSON.stringify(value)
