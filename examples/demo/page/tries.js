// A range player, a preflight from another origin, a replayed POST.
import { createResourceClient, expectSuccess } from 'http-resource-service/client'
import { button, el } from './dom.js'
import { createPlayer } from './player.js'
import { createWire } from './wire.js'

/** @param {HTMLElement} host */
export function createTries(host) {
  host.append(
    createCard(
      'Ranges',
      '/file.bin is played slowly. Stop it, and it goes on where it was: Range and If-Range.',
      addPlayer,
    ),
    createCard('Another origin', 'What browsers ask before a page of another site may send a PATCH.', addPreflights),
    createCard(
      'The same POST twice',
      'An answer was lost? With the same Idempotency-Key the POST is done once.',
      addReplay,
    ),
  )
}

function createCard(title, text, fill) {
  const wire = createWire(`Requests of: ${title}`)
  const result = el('p', { class: 'note', role: 'status' })
  const card = el('article', { class: 'card try', 'aria-label': title }, el('h3', {}, title), el('p', {}, text))
  const client = createResourceClient('/api', { fetch: wire.fetch })
  fill({ card, client, wire, say: (words) => (result.textContent = words) })
  card.append(result, wire.list)
  return card
}

function addPlayer({ card, client, say }) {
  card.append(createPlayer(client, say))
}

function addPreflights({ card, wire, say }) {
  // Scripts cannot send preflights: the server sends them to itself, and tells how they went.
  const home = createResourceClient('/')
  const ask = async () => {
    try {
      const preflights = expectSuccess(await home.read('/demo/preflights')).document.value
      const isAllowed = ({ fields }) => fields.some(([name]) => name === 'access-control-allow-origin')
      wire.begin()
      for (const preflight of preflights) wire.add(preflight)
      say(
        preflights
          .map((preflight) => {
            const { Origin: origin } = preflight.headers
            return `${origin} ${isAllowed(preflight) ? 'may' : 'may not: no Access-Control-Allow-Origin'}.`
          })
          .join(' '),
      )
    } catch (error) {
      say(String(error.message ?? error))
    }
  }
  card.append(el('div', { class: 'actions' }, button('Send two preflights', ask, { class: 'primary' })))
}

function addReplay({ card, client, wire, say }) {
  const send = async () => {
    const key = crypto.randomUUID()
    wire.begin()
    try {
      const note = { title: `Sent twice at ${new Date().toLocaleTimeString()}` }
      const first = expectSuccess(await client.create('/notes', note, { key }))
      const second = expectSuccess(await client.create('/notes', note, { key }))
      const [one, other] = [first, second].map(({ url }) => new URL(url).pathname)
      say(one === other ? `Both were answered with ${one}: one note, not two.` : `Two notes: ${one} and ${other}.`)
    } catch (error) {
      say(String(error.message ?? error))
    }
  }
  card.append(el('div', { class: 'actions' }, button('Send it twice', send, { class: 'primary' })))
}
