// Loaded before a server: tells its parent, when asked, what is left after a full collection.
process.on('message', () => {
  globalThis.gc()
  globalThis.gc()
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
  process.send({ rss, heapUsed, external, arrayBuffers })
})
