import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram } from '../real/programs.ts'
import { type DemoPages, startPages } from './open-page.ts'

const executablePath = findProgram('chromium', 'chromium-browser', 'google-chrome')

describe.runIf(executablePath !== undefined)('the lists of the demo page', () => {
  let pages: DemoPages
  beforeAll(async () => {
    pages = await startPages(executablePath!)
  })
  afterAll(() => pages.close())

  it("filters, orders and counts by the server's query where the collection has one", async () => {
    const { page, faults } = await pages.open()
    const panel = page.locator('#resources')
    const status = panel.getByRole('status').first()
    const items = panel.locator('.item')
    await panel.getByLabel('Collection').selectOption('/notes')
    for (let rank = 1; rank <= 7; rank++) {
      const title = rank === 3 ? 'Other' : `Note ${rank}`
      await panel.getByLabel('New item').fill(JSON.stringify({ title, rank }))
      await panel.getByRole('button', { name: 'Create' }).click()
      await status.getByText(`201: /api/notes/${rank}`).waitFor()
    }
    await panel.getByLabel('Filter').fill('Note')
    await status.getByText('5 of 6 shown.').waitFor()
    await panel.getByLabel('Order').selectOption('-rank')
    await items.first().getByText('Note 7').waitFor()
    expect(await items.allInnerTexts()).toEqual(['/7 Note 7', '/6 Note 6', '/5 Note 5', '/4 Note 4', '/2 Note 2'])
    const wire = panel.getByRole('list', { name: 'Requests of the list' })
    expect((await wire.allInnerTexts()).join()).toContain('title%5Bprefix%5D=Note&sort=-rank&limit=5&count=true')
    await panel.getByRole('button', { name: 'More' }).click()
    await status.getByText('6 of 6 shown.').waitFor()
    expect(await panel.getByRole('button', { name: 'More' }).isVisible()).toBe(false)
    await panel.getByLabel('Filter').fill('None')
    await status.getByText('Nothing has this text.').waitFor()
    // The page filters the others itself.
    await panel.getByLabel('Collection').selectOption('/users')
    expect(await panel.getByLabel('Order').isVisible()).toBe(false)
    expect(faults).toEqual([])
    await page.close()
  })

  it('says that tasks need a token, and lists them with one', async () => {
    const { page, faults } = await pages.open()
    const panel = page.locator('#resources')
    const status = panel.getByRole('status').first()
    await panel.getByLabel('Collection').selectOption('/tasks')
    const refusal = status.getByText('401: this needs the token that was printed at start.')
    await refusal.waitFor()
    await panel.getByRole('button', { name: 'Create' }).click()
    await panel.getByRole('list', { name: 'Requests of the list' }).getByText('POST /api/tasks').waitFor()
    await refusal.waitFor()
    await panel.getByText('Sign in for tasks').click()
    await panel.getByLabel('Bearer token').fill(pages.token)
    await panel.getByLabel('Bearer token').blur()
    await status.getByText('Nothing here yet.').waitFor()
    await panel.getByRole('button', { name: 'Create' }).click()
    await status.getByText('201: /api/tasks/1').waitFor()
    await panel.locator('.item').click()
    await panel.locator('.detail pre', { hasText: '"createdAt":' }).waitFor()
    expect(faults).toEqual([])
    await page.close()
  })
})
