// Both editors add to one number at the same time, as fast as they can.

/**
 * @param {import('./session.js').Session} session
 * @param {number} edits of each editor
 * @returns how many edits were answered with success, and how many of them the document does not show
 */
export async function race(session, edits) {
  const [ada] = session.panes
  const before = await readEdits(ada.client, session.path())
  const isCareless = session.isCareless()
  const saved = await Promise.all(session.panes.map((pane) => run(pane.client, session, edits, isCareless)))
  const after = await readEdits(ada.client, session.path())
  const acknowledged = saved[0] + saved[1]
  const lost = acknowledged - (after - before)
  session.count('saved', acknowledged)
  session.count('lost', lost)
  for (const pane of session.panes) await pane.load()
  return { acknowledged, lost }
}

async function run(client, session, edits, isCareless) {
  const path = session.path()
  let saved = 0
  for (let i = 0; i < edits; i++) {
    const result = isCareless
      ? await overwrite(client, path)
      : await client.edit(path, (document) => ({ ...document, edits: (document.edits ?? 0) + 1 }))
    if (result.ok) saved++
  }
  return saved
}

/** Reads, adds one and sends the whole document: what happens in between is lost. */
async function overwrite(client, path) {
  const read = await client.read(path)
  if (!read.ok) return read
  const { value } = read.document
  return client.replace(read.document, { ...value, edits: (value.edits ?? 0) + 1 })
}

async function readEdits(client, path) {
  const result = await client.read(path)
  return (result.ok && result.document.value.edits) || 0
}
