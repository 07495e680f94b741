// Files: stored as they are in /docs, or given to the server to work on in /uploads.
import { createResourceClient, expectSuccess } from 'http-resource-service/client'
import { button, el, nextId } from './dom.js'

/** @param {{ client: object, session: object, path: () => string, done: (text: string) => Promise<void> }} options */
export function createUploads({ client, session, path, done }) {
  // Without a fetch of its own: browsers show the progress of XMLHttpRequest alone.
  const uploader = createResourceClient('/api', { headers: session.credentials })
  const file = el('input', { id: nextId('file'), type: 'file' })
  const progress = el('progress', { max: '1', value: '0', 'aria-label': 'Sent', hidden: true })
  const note = el('p', { class: 'note', role: 'status' })
  const element = el(
    'div',
    {},
    el('label', { for: file.id }, 'File'),
    file,
    el('div', { class: 'actions' }, button('Upload', upload)),
    progress,
    note,
  )

  async function upload() {
    const content = file.files[0]
    if (content === undefined) {
      note.textContent = 'Choose a file first.'
      return file.focus()
    }
    note.textContent = ''
    try {
      await (path() === '/docs' ? store(content) : submit(content))
    } catch (error) {
      note.textContent = String(error.message ?? error)
    }
  }

  /** PUT, where nothing is yet: If-None-Match: * */
  async function store(content) {
    const name = content.name.replace(/[^\w.-]+/g, '-')
    progress.hidden = false
    const result = await uploader.upload(`/docs/${name}`, 'absent', content, {
      onProgress: (sent, total) => {
        progress.value = total === 0 ? 1 : sent / total
        note.textContent = `${sent.toLocaleString()} of ${total.toLocaleString()} bytes`
      },
    })
    if (result.ok) return done(`${result.status}: /docs/${name}, ${content.size.toLocaleString()} bytes`)
    const reason = result.status === 412 ? 'there is a document of this name' : (result.problem.detail ?? 'refused')
    note.textContent = `${result.status}: ${reason}`
  }

  /** POST, answered 202 at once; the work is watched until it is done. */
  async function submit(content) {
    const form = new FormData()
    form.append('title', content.name)
    form.append('file', content)
    const accepted = expectSuccess(await client.create('/uploads', form))
    note.textContent = '202: accepted, being read …'
    const ended = expectSuccess(await client.wait(accepted.operation))
    await done(`${new URL(accepted.url).pathname} is ${ended.document.value.state}.`)
  }

  async function showContent(target, host) {
    try {
      const { file } = expectSuccess(await client.download(target))
      const isText = /^text\/|json/.test(file.contentType) && (file.size ?? 0) <= 4096
      const text = isText ? await (await file.blob()).text() : undefined
      if (!isText) await file.cancel()
      host.replaceChildren(
        el('h3', {}, target),
        el(
          'p',
          { class: 'dim' },
          `${file.contentType}, ${file.size?.toLocaleString()} bytes, `,
          el('code', { class: 'tag' }, file.entityTag ?? 'no tag'),
        ),
        ...(isText ? [el('pre', { tabindex: '0' }, text)] : []),
        el(
          'div',
          { class: 'actions' },
          button('Remove', async () => {
            const result = await client.remove(file)
            if (result.ok) return done(`${result.status}: ${target} is removed.`)
            note.textContent =
              result.status === 401 ? '401: removing needs the token that was printed at start.' : `${result.status}`
          }),
        ),
      )
    } catch (error) {
      note.textContent = String(error.message ?? error)
    }
  }

  return {
    element,
    showContent,
    reset() {
      progress.hidden = true
      progress.value = 0
      note.textContent = ''
    },
  }
}
