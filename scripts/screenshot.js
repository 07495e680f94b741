// Takes the picture of the demo page for the README: npm run screenshot. It needs Chromium; CHROMIUM names another one.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, statSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'

const FILE = 'docs/images/demo.png'
/** More would be a burden for each clone. */
const MOST = 200_000

const demo = spawn(process.execPath, ['examples/plain-http.js'], {
  env: { ...process.env, PORT: '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
try {
  await takePicture(await findAddress())
  const { size } = statSync(FILE)
  if (size > MOST) throw new Error(`${FILE} has ${size} bytes, more than ${MOST}.`)
  console.log(`${FILE}, ${size} bytes`)
} finally {
  demo.kill()
}

async function findAddress() {
  for await (const line of createInterface({ input: demo.stdout })) {
    const address = /^listening on (\S+)$/.exec(line)?.[1]
    if (address !== undefined) return address
  }
  const [code] = await once(demo, 'exit')
  throw new Error(`The demo ended with ${code}.`)
}

async function takePicture(address) {
  const executablePath = process.env.CHROMIUM || '/usr/bin/chromium'
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--no-proxy-server'] })
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 1010 }, colorScheme: 'light' })
    await page.goto(address)
    await page.waitForSelector('html[data-ready]')
    for (const number of [1, 2]) {
      await page.getByRole('button', { name: 'Create' }).click()
      await page.getByText(`201: /api/users/${number}`).waitFor()
    }
    await page.getByRole('button', { name: 'Show a merge' }).click()
    await page.locator('.merge').waitFor()
    // The pointer and the focus are not part of the picture.
    await page.mouse.move(0, 0)
    await page.evaluate('document.activeElement.blur()')
    mkdirSync('docs/images', { recursive: true })
    await page.screenshot({ path: FILE })
  } finally {
    await browser.close()
  }
}
