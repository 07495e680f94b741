// Plays /file.bin, in which byte i is i mod 251: each byte that arrives is checked.
import { el, nextId } from './dom.js'

const SIZE = 1024 * 1024
/** Bytes that are played at a time, and milliseconds for each: some six seconds for all. */
const STEP = 16 * 1024
const PAUSE = 90

/**
 * @param {object} client
 * @param {(text: string) => void} say
 */
export function createPlayer(client, say) {
  const position = el('input', {
    id: nextId('position'),
    type: 'range',
    min: '0',
    max: String(SIZE - 1),
    value: '0',
    step: '1',
  })
  const time = el('output', { for: position.id })
  const play = el('button', { type: 'button', class: 'primary' }, 'Play')
  let entityTag
  let playing

  play.addEventListener('click', () => (playing === undefined ? start() : stop()))
  position.addEventListener('input', () => {
    stop()
    showPosition(position.valueAsNumber)
  })
  showPosition(0)

  function showPosition(at) {
    position.value = String(at)
    position.setAttribute('aria-valuetext', `byte ${at}`)
    time.textContent = `${Math.round((at / SIZE) * 100)} %`
  }

  function stop() {
    playing?.abort()
    playing = undefined
    play.textContent = 'Play'
  }

  async function start() {
    const controller = new AbortController()
    playing = controller
    play.textContent = 'Stop'
    const isAtEnd = position.valueAsNumber >= SIZE - 1
    const offset = isAtEnd ? 0 : position.valueAsNumber
    try {
      // A range holds for one state only, so that the tag has to be known: from the last response, or from a first one.
      if (offset > 0) entityTag ??= await findTag(client, controller.signal)
      const resume = offset > 0 && entityTag !== undefined ? { offset, entityTag } : undefined
      const result = await client.download('/file.bin', { signal: controller.signal, ...(resume && { resume }) })
      if (!result.ok) return say(`${result.status}`)
      entityTag = result.file.entityTag
      await playFile(result.file, controller.signal)
    } catch (error) {
      if (!controller.signal.aborted) say(String(error.message ?? error))
    } finally {
      if (playing === controller) stop()
    }
  }

  async function playFile(file, signal) {
    let at = file.offset
    const begin = at
    for await (const chunk of file) {
      for (let i = 0; i < chunk.length; i += STEP) {
        const piece = chunk.subarray(i, i + STEP)
        const wrong = piece.findIndex((byte, index) => byte !== (at + index) % 251)
        if (wrong !== -1) return say(`Byte ${at + wrong} is wrong.`)
        at += piece.length
        showPosition(Math.min(at, SIZE - 1))
        say(`Bytes ${begin.toLocaleString()} to ${(at - 1).toLocaleString()}, each as it should be.`)
        await new Promise((resolve) => setTimeout(resolve, PAUSE))
        if (signal.aborted) return
      }
    }
  }

  return el(
    'div',
    { class: 'player' },
    el('label', { for: position.id }, 'Position'),
    el('div', { class: 'row' }, play, position, time),
  )
}

async function findTag(client, signal) {
  const result = await client.download('/file.bin', { signal })
  if (!result.ok) return undefined
  await result.file.cancel()
  return result.file.entityTag
}
