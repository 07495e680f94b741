// What a merge has made of two changes, property by property; where both changed one, the user chooses.
import { merge } from 'http-resource-service/client'
import { button, el, nextId, show } from './dom.js'

/** The properties in which three states of a document differ. */
export function compare(base, mine, theirs) {
  const conflicts = new Map(
    merge(base, mine, theirs).conflicts.map((conflict) => [conflict.pointer.split('/')[1], conflict]),
  )
  const names = [...new Set([base, theirs, mine].flatMap(Object.keys))]
  return names
    .map((name) => ({
      name,
      base: base[name],
      mine: mine[name],
      theirs: theirs[name],
      isConflict: conflicts.has(name),
      by: [!same(base[name], mine[name]) && 'mine', !same(base[name], theirs[name]) && 'theirs'].filter(Boolean),
    }))
    .filter(({ by }) => by.length > 0)
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)

/**
 * Shows a merge without conflicts.
 * @param {{ mine: string, theirs: string }} names whose changes these are
 */
export function showMerge(rows, names) {
  return el(
    'div',
    { class: 'merge' },
    el(
      'p',
      {},
      el('b', {}, '412'),
      `: ${names.theirs} was faster. Both changed other properties, so both changes are kept.`,
    ),
    table(
      rows,
      names,
      ({ by, mine, theirs }) =>
        el(
          'td',
          { class: by.includes('mine') ? 'from-mine' : 'from-theirs' },
          show(by.includes('mine') ? mine : theirs),
        ),
      'Saved',
    ),
  )
}

/**
 * Shows a conflict side by side.
 * @returns the element, and the names of the properties in which mine is chosen, once the user has chosen
 */
export function askForChoice(rows, names) {
  let choose
  const chosen = new Promise((resolve) => {
    choose = resolve
  })
  const group = nextId('choice')
  const isMine = ({ name }) =>
    element.querySelector(`input[name="${CSS.escape(`${group}-${name}`)}"]:checked`)?.value === 'mine'
  const option = (row, side, value) => {
    const id = nextId('option')
    return el(
      'div',
      { class: `option from-${side}` },
      el('input', { type: 'radio', id, name: `${group}-${row.name}`, value: side, checked: side === 'mine' }),
      el('label', { for: id }, el('span', { class: 'who' }, side === 'mine' ? names.mine : names.theirs), show(value)),
    )
  }
  const conflicts = rows.filter(({ isConflict }) => isConflict)
  const others = rows.filter(({ isConflict }) => !isConflict)
  const element = el(
    'div',
    { class: 'merge conflict', tabindex: '-1' },
    el(
      'p',
      {},
      el('b', {}, '412'),
      `: ${names.theirs} changed the same ${conflicts.length === 1 ? 'property' : 'properties'}. Choose.`,
    ),
    ...conflicts.map((row) =>
      el(
        'fieldset',
        {},
        el('legend', {}, el('code', {}, row.name), ` was ${show(row.base)}`),
        option(row, 'mine', row.mine),
        option(row, 'theirs', row.theirs),
      ),
    ),
    others.length > 0 &&
      el('p', { class: 'dim' }, `Merged without a question: ${others.map(({ name }) => name).join(', ')}.`),
    button('Save this choice', () => choose(new Set(conflicts.filter(isMine).map(({ name }) => name))), {
      class: 'primary',
    }),
  )
  return { element, chosen, withdraw: () => choose(undefined) }
}

function table(rows, names, last, title) {
  const heads = ['Property', 'Both read', names.mine, names.theirs, title]
  const change = (row, side) =>
    el('td', { class: row.by.includes(side) ? `from-${side}` : 'dim' }, row.by.includes(side) ? show(row[side]) : '–')
  return el(
    'div',
    { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Merge by property' },
    el(
      'table',
      {},
      el('thead', {}, el('tr', {}, ...heads.map((head) => el('th', { scope: 'col' }, head)))),
      el(
        'tbody',
        {},
        ...rows.map((row) =>
          el(
            'tr',
            {},
            el('th', { scope: 'row' }, row.name),
            el('td', { class: 'dim' }, show(row.base)),
            change(row, 'mine'),
            change(row, 'theirs'),
            last(row),
          ),
        ),
      ),
    ),
  )
}
