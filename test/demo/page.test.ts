import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram } from '../real/programs.ts'
import { type DemoPages, startPages } from './open-page.ts'

const executablePath = findProgram('chromium', 'chromium-browser', 'google-chrome')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What the wire of a part of the page shows, entry by entry. */
const wireOf = (page: Page, label: string): Promise<readonly string[]> =>
  page.getByRole('list', { name: label }).locator('.entry').allInnerTexts()

describe.runIf(executablePath !== undefined)('the demo page', () => {
  let pages: DemoPages
  beforeAll(async () => {
    pages = await startPages(executablePath!)
  })
  afterAll(() => pages.close())

  it('shows a merge by property, with the requests as they went', async () => {
    const { page, faults } = await pages.open()
    await page.getByRole('button', { name: 'Show a merge' }).click()
    const merge = page.locator('#grace .merge')
    await merge.waitFor()
    const rows = await merge.getByRole('row').allInnerTexts()
    const { place, guests } = pages.states.at(-1)!
    expect(rows.map((row) => row.split('\t'))).toEqual([
      ['Property', 'Both read', 'Grace', 'Ada', 'Saved'],
      ['place', expect.any(String), '–', place, place],
      ['guests', expect.any(String), String(guests), '–', String(guests)],
    ])
    // The merge may be shown before the last request is.
    let wire: string[] = []
    const readWire = async () => {
      wire = (await wireOf(page, 'Requests of Grace')).slice(-3)
      return wire.map((entry) => /^(\w+) \/api\/plan[\s\S]*?HTTP\/1.1 (\d{3})/m.exec(entry)?.slice(1))
    }
    await expect.poll(readWire).toEqual([
      ['PATCH', '412'],
      ['GET', '200'],
      ['PATCH', '200'],
    ])
    expect(wire[0]).toMatch(/^If-Match: "/m)
    expect(wire[0]).toContain('explain: evaluateConditions: If-Match failed')
    const marked = page.locator('#grace .wire > .entry .conditional')
    expect((await marked.allInnerTexts()).every((line) => /^(?:If-(?:None-)?Match|ETag): /.test(line))).toBe(true)
    expect(faults).toEqual([])
    await page.close()
  })

  it.each(['Ada', 'Grace'])(
    'shows a conflict side by side, and saves the place of %s when it is chosen',
    async (name) => {
      const { page } = await pages.open()
      await page.getByRole('button', { name: 'Show a conflict' }).click()
      const conflict = page.locator('#grace .conflict')
      const option = conflict.getByRole('radio', { name })
      await option.check()
      const place = (await conflict.locator('label', { hasText: name }).allInnerTexts())[0]!.split('\n').at(-1)
      await conflict.getByRole('button', { name: 'Save this choice' }).click()
      await conflict.waitFor({ state: 'detached' })
      await page.locator('#grace .state', { hasText: 'up to date' }).waitFor()
      expect(pages.states.at(-1)!.place).toBe(place)
      expect(await page.getByLabel('Grace: place').inputValue()).toBe(place)
      await page.close()
    },
  )

  it('shows the faults that the server finds at their properties (422)', async () => {
    const { page } = await pages.open()
    await page.getByLabel('Ada: guests').fill('0')
    await page.getByLabel('Ada: guests').press('Enter')
    const fault = page.locator('#ada .fault:not(:empty)')
    await fault.waitFor()
    expect(await page.getByLabel('Ada: guests').getAttribute('aria-invalid')).not.toBeNull()
    expect(await page.getByLabel('Ada: guests').getAttribute('aria-describedby')).toBe(await fault.getAttribute('id'))
    await page.close()
  })

  it('creates, lists by page, filters, reads, opens in the editors and removes', async () => {
    const { page, faults } = await pages.open()
    const panel = page.locator('#resources')
    const status = panel.getByRole('status').first()
    const items = panel.locator('.item')
    for (let i = 1; i <= 6; i++) {
      await panel.getByRole('button', { name: 'Create' }).click()
      await status.getByText(`201: /api/users/${i}`).waitFor()
    }
    expect(await items.count()).toBe(5)
    await panel.getByRole('button', { name: 'More' }).click()
    await items.nth(5).waitFor()
    // Content is text, whatever it looks like.
    await panel.getByLabel('New item').fill('{"name":"<img src=x onerror=alert(1)>","email":"a@example.org"}')
    await panel.getByRole('button', { name: 'Create' }).click()
    await panel.getByLabel('Filter').fill('onerror')
    await items.getByText('<img src=x').click()
    await panel.getByRole('button', { name: 'Edit in both editors' }).click()
    await page.getByLabel('Ada: name').fill('Hedy')
    await page.getByRole('button', { name: 'Save as Ada' }).click()
    await page.locator('#grace').getByText('Ada has saved since').waitFor()
    await panel.getByRole('button', { name: 'Remove' }).click()
    await status.getByText('401').waitFor()
    await panel.getByText('Sign in for tasks, and to remove').click()
    await panel.getByLabel('Bearer token').fill(pages.token)
    // The state that was shown is another one by now.
    await panel.getByRole('button', { name: 'Remove' }).click()
    await status.getByText('412').waitFor()
    await panel.getByLabel('Filter').fill('Hedy')
    await items.getByText('Hedy').first().click()
    await panel.getByRole('button', { name: 'Remove' }).click()
    await status.getByText('204').waitFor()
    expect((await wireOf(page, 'Requests of the list')).join()).not.toContain(pages.token.slice(20))
    expect(faults).toEqual([])
    await page.close()
  })

  it('uploads with progress, once for each name', async () => {
    const { page } = await pages.open()
    const panel = page.locator('#resources')
    await panel.getByLabel('Collection').selectOption('/docs')
    const seen: number[] = []
    await page.exposeFunction('see', (value: number) => seen.push(value))
    await page.evaluate('inPage.watchProgress(see)')
    const file = { name: 'a film.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(3_000_000) }
    await panel.getByLabel('File').setInputFiles(file)
    await panel.getByRole('button', { name: 'Upload' }).click()
    await panel.getByText('201: /docs/a-film.bin, 3,000,000 bytes').waitFor()
    expect(seen).toContain(1)
    await panel.getByLabel('File').setInputFiles(file)
    await panel.getByRole('button', { name: 'Upload' }).click()
    await panel.getByText('412: there is a document of this name').waitFor()
    await page.close()
  })

  it('plays ranges, sends preflights, and repeats a POST', async () => {
    const { page, faults } = await pages.open()
    const ranges = page.getByRole('article', { name: 'Ranges' })
    await ranges.getByRole('button', { name: 'Play' }).click()
    await ranges.getByText(/each as it should be/).waitFor()
    await ranges.getByRole('button', { name: 'Stop' }).click()
    const position = ranges.getByRole('slider', { name: 'Position' })
    await position.fill('1000000')
    await ranges.getByRole('button', { name: 'Play' }).click()
    await ranges.getByText('Bytes 1,000,000 to 1,048,575, each as it should be.').waitFor()
    const [whole, part] = await wireOf(page, 'Requests of: Ranges')
    expect(whole).toContain('HTTP/1.1 200 OK')
    expect(part).toMatch(/^Range: bytes=1000000-\nIf-Range: ".*"\n\s*HTTP\/1.1 206 Partial Content/m)

    const origins = page.getByRole('article', { name: 'Another origin' })
    await origins.getByRole('button').click()
    await origins.getByText('https://app.example may. https://elsewhere.example may not').waitFor()
    const [allowed, refused] = await wireOf(page, 'Requests of: Another origin')
    expect(allowed).toContain('Access-Control-Allow-Origin: https://app.example')
    expect(refused).not.toContain('Access-Control-Allow-Origin:')

    const twice = page.getByRole('article', { name: 'The same POST twice' })
    await twice.getByRole('button').click()
    await twice.getByText('Both were answered with /api/notes/1: one note, not two.').waitFor()
    const sent = (await wireOf(page, 'Requests of: The same POST twice')).map(
      (entry) => /^Idempotency-Key: .*/m.exec(entry)?.[0],
    )
    expect(new Set(sent).size).toBe(1)
    expect(sent).toHaveLength(2)
    expect(faults).toEqual([])
    await page.close()
  })

  it('is used with the keyboard alone: every control is met in the order of the page, and shows that it has the focus', async () => {
    const { page, run } = await pages.open({ viewport: { width: 1280, height: 900 } })
    const met: { readonly name: string; readonly outline: string }[] = []
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press('Tab')
      const focused = await run<(typeof met)[number] | undefined>('describeFocus')
      if (focused === undefined) break
      met.push(focused)
    }
    expect(met.every(({ outline }) => outline === 'solid 2px')).toBe(true)
    const names = met.map(({ name }) => name)
    expect(names[0]).toBe('Skip to the editors')
    const inOrder = [
      'Create',
      'Show a merge',
      'Save as Ada',
      'Save as Grace',
      'Play',
      'Send two preflights',
      'Send it twice',
    ]
    expect(names.filter((name) => inOrder.includes(name))).toEqual(inOrder)
    const controls = await page
      .locator('button:visible, input:visible, select:visible, textarea:visible, summary:visible')
      .count()
    expect(names.length).toBeGreaterThanOrEqual(controls)

    await page.getByRole('button', { name: 'Show a conflict' }).focus()
    await page.keyboard.press('Enter')
    const conflict = page.locator('#grace .conflict')
    await conflict.getByRole('radio').first().focus()
    await page.keyboard.press('ArrowRight')
    expect(await conflict.getByRole('radio').last().isChecked()).toBe(true)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await conflict.waitFor({ state: 'detached' })
    await page.close()
  })

  it.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
    ['dark', 390],
  ] as const)('has no fault that axe finds, and no sideways scrolling: %s, %i pixels', async (colorScheme, width) => {
    const { page, run } = await pages.open({ colorScheme, viewport: { width, height: 900 } })
    await page.evaluate(axe)
    if (width < 1000) await page.getByText('Resources', { exact: true }).click()
    await page.getByRole('button', { name: 'Show a merge' }).click()
    await page.locator('.merge').waitFor()
    const found = await run<readonly string[]>('findFaults')
    await page.getByRole('button', { name: 'Show a conflict' }).click()
    await page.locator('.conflict').waitFor()
    await page.getByLabel('Without If-Match').check()
    await page.getByRole('button', { name: 'Send two preflights' }).click()
    await page.getByRole('button', { name: 'Send it twice' }).click()
    await page.getByText('one note, not two').waitFor()
    await page.getByRole('button', { name: 'Race', exact: true }).click()
    await page.getByText(/edits were answered/).waitFor()
    expect([...found, ...(await run<readonly string[]>('findFaults'))]).toEqual([])
    expect(await run('widthOf')).toBe(width)
    await run('addFault')
    expect((await run<readonly string[]>('findFaults')).join()).toContain('image-alt')
    await page.close()
  })

  it('moves nothing where less motion is asked for', async () => {
    const moving = await pages.open({ reducedMotion: 'no-preference' })
    expect(await moving.run('findMotion')).not.toEqual([])
    await moving.page.close()
    const { page, run } = await pages.open({ reducedMotion: 'reduce' })
    expect(await run('findMotion')).toEqual([])
    await page.close()
  })
})
