// Uploads that are accepted at once (202) and processed later. A page shows their progress.
import { createServer } from 'node:http'
import { collection, createResourceService, memoryStore } from 'http-resource-service'

const service = createResourceService(memoryStore(), {
  resources: {
    '/uploads': collection({
      create: 'accepted',
      files: { file: { required: true } },
      // The result joins the item, whose state is then "ready".
      async process(item) {
        const file = await item.file('file')
        let lines = 1
        for await (const chunk of file.open()) lines += chunk.filter((byte) => byte === 0x0a).length
        return { lines }
      },
    }),
  },
})

const page = `<!doctype html><meta charset="utf-8"><title>Upload</title>
<input type="file"><progress max="1" value="0"></progress><pre></pre>
<script>
  const [input, progress, log] = document.querySelectorAll('input, progress, pre')
  input.onchange = () => {
    const form = new FormData()
    form.append('title', input.files[0].name)
    form.append('file', input.files[0])
    const request = new XMLHttpRequest() // fetch does not report the progress of an upload
    request.upload.onprogress = ({ loaded, total }) => { progress.value = loaded / total }
    request.onload = () => {
      if (request.status === 202) watch(request.getResponseHeader('Location'))
      else log.textContent = request.status + ' ' + request.responseText
    }
    request.onerror = () => { log.textContent = 'no response' }
    request.open('POST', '/uploads')
    request.send(form)
  }
  async function watch(location) {
    const item = await (await fetch(location)).json()
    log.textContent = JSON.stringify(item, null, 2)
    if (item.state === 'pending') setTimeout(watch, 500, location)
  }
</script>`

const server = createServer((req, res) => {
  if (req.url === '/') res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(page)
  else service(req, res)
})
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
