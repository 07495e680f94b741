import { byId, onPress } from './dom.js'
import { createEditor } from './editor.js'
import { race } from './race.js'
import { createResources } from './resources.js'
import { createSession } from './session.js'
import { createTries } from './tries.js'

const counts = { saved: byId('count-saved'), merged: byId('count-merged'), lost: byId('count-lost') }
const session = createSession({ careless: byId('careless'), counts, token: () => resources.token() })
const editors = [
  createEditor(byId('ada'), { name: 'Ada', other: 'Grace', session }),
  createEditor(byId('grace'), { name: 'Grace', other: 'Ada', session }),
]
session.panes.push(...editors)
const [ada, grace] = editors

const resources = createResources(byId('resources'), {
  session,
  async open(path) {
    byId('document-path').textContent = `/api${path}`
    await session.open(path)
    byId('editors').focus()
  },
})
createTries(byId('tries'))
// Above the editors, where the screen is narrow.
byId('resources-panel').open = !matchMedia('(max-width: 1080px)').matches

byId('careless').addEventListener('change', ({ target }) => {
  byId('editors').classList.toggle('careless', target.checked)
})

/** Both begin with the plan as it is now. */
async function begin() {
  if (session.path() !== '/plan') byId('document-path').textContent = '/api/plan'
  await session.open('/plan')
}

const PLACES = ['At Rosa’s', 'On the roof', 'By the river', 'In the garden']
const pick = (values, current) => values[(values.indexOf(current) + 1) % values.length]

onPress(byId('play-merge'), async () => {
  await begin()
  const { place, guests } = ada.document.value
  ada.form.type('place', pick(PLACES, place))
  grace.form.type('guests', (guests % 12) + 1)
  await ada.save()
  await grace.save()
})

onPress(byId('play-conflict'), async () => {
  await begin()
  const { place } = ada.document.value
  const mine = pick(PLACES, place)
  ada.form.type('place', mine)
  grace.form.type('place', pick(PLACES, mine))
  await ada.save()
  // Not awaited: it ends when the user has chosen.
  grace.save()
})

onPress(byId('race'), async () => {
  const result = byId('race-result')
  const edits = Math.min(1000, Math.max(1, byId('race-edits').valueAsNumber || 1))
  result.className = 'note'
  result.textContent = 'Both add to “edits” …'
  try {
    const { acknowledged, lost } = await race(session, edits)
    result.textContent = `${acknowledged} edits were answered with success. Lost: ${lost}.`
    result.classList.toggle('alarm', lost > 0)
  } catch (error) {
    result.textContent = String(error.message ?? error)
  }
})

await Promise.all([begin(), resources.refresh()])
document.documentElement.dataset.ready = 'true'
