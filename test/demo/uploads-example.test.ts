import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram } from '../real/programs.ts'
import { type Program, runProgram } from '../support/run-program.ts'

const executablePath = findProgram('chromium', 'chromium-browser', 'google-chrome')

describe.runIf(executablePath !== undefined)('the page of examples/uploads.js', () => {
  let program: Program
  let base: string
  beforeAll(async () => {
    program = runProgram('examples/uploads.js', { PORT: '0' })
    base = (await program.waitFor(/listening on (http:\S+)/))[1]!
  })
  afterAll(() => program.stop('SIGKILL'))

  it('shows the item, and why an upload is refused: it does not ask for an item then', async () => {
    const browser = await chromium.launch({
      executablePath: executablePath!,
      args: ['--no-sandbox', '--no-proxy-server'],
    })
    try {
      const page = await browser.newPage()
      const paths: string[] = []
      page.on('request', (request) => paths.push(new URL(request.url()).pathname))
      await page.goto(base)
      const select = () =>
        page.setInputFiles('input', { name: 'lines.txt', mimeType: 'text/plain', buffer: Buffer.from('a\nb\nc') })
      await select()
      await page.getByText('"lines": 3').waitFor()
      await page.route('**/uploads', (route) =>
        route.fulfill({ status: 413, contentType: 'application/problem+json', body: '{"status":413}' }),
      )
      await select()
      await page.getByText('413 {"status":413}').waitFor()
      await page.unroute('**/uploads')
      await page.route('**/uploads', (route) => route.abort())
      await select()
      await page.getByText('no response').waitFor()
      expect(paths).not.toContain('/null')
    } finally {
      await browser.close()
    }
  })
})
