import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findProgram } from '../real/programs.ts'
import { type DemoPages, type Plan, startPages } from './open-page.ts'

const executablePath = findProgram('chromium', 'chromium-browser', 'google-chrome')

/** An edit as it was typed: each has a value of its own. */
interface TypedEdit {
  readonly pane: 'ada' | 'grace'
  readonly name: 'title' | 'place' | 'edits'
  readonly value: string | number
  /** Whether the user has chosen the value of the other editor in a conflict. */
  readonly isWithdrawn: boolean
}

/** The names of the properties in which two states differ. */
function changesBetween(before: Plan, after: Plan): readonly string[] {
  return Object.keys(after).filter((name) => before[name as keyof Plan] !== after[name as keyof Plan])
}

describe.runIf(executablePath !== undefined)('edits in both editors of the demo page', () => {
  let pages: DemoPages
  beforeAll(async () => {
    pages = await startPages(executablePath!)
  })
  afterAll(() => pages.close())

  it('are all kept: 500 of random properties at the same time (issue 21)', async () => {
    const { page, faults, count, run } = await pages.open()
    const first = pages.states.length - 1
    const edits = await run<readonly TypedEdit[]>('editInBoth', 250)
    const states = pages.states.slice(first)
    const changes = states.slice(1).map((state, index) => {
      const names = changesBetween(states[index]!, state)
      return names.map((name) => `${name}: ${state[name as keyof Plan]}`)
    })
    // Every state differs from the one before it by one edit, and every edit that was not withdrawn made one.
    const kept = edits.filter(({ isWithdrawn }) => !isWithdrawn)
    expect(edits).toHaveLength(500)
    expect(changes.every((names) => names.length === 1)).toBe(true)
    expect(changes.flat().sort()).toEqual(kept.map(({ name, value }) => `${name}: ${value}`).sort())
    expect(await count('saved')).toBe(500)
    expect(await count('merged')).toBeGreaterThan(0)
    expect(await count('lost')).toBe(0)
    expect(faults).toEqual([])
    await page.close()
  }, 240_000)

  it('are lost without If-Match, and counted in red', async () => {
    const { page, count, run } = await pages.open({ colorScheme: 'light' })
    await page.getByLabel('Without If-Match').check()
    const first = pages.states.length - 1
    const edits = await run<readonly TypedEdit[]>('editInTurn', 40)
    const states = pages.states.slice(first)
    expect(states).toHaveLength(41)
    // What an editor has read, and what it found changed when it wrote over it.
    const known = { ada: states[0]!, grace: states[0]! }
    let lost = 0
    for (const [index, { pane }] of edits.entries()) {
      const [before, after] = [states[index]!, states[index + 1]!]
      const unseen = changesBetween(known[pane], before)
      lost += unseen.filter((name) => changesBetween(before, after).includes(name)).length
      known[pane] = after
    }
    expect(lost).toBeGreaterThan(0)
    expect(await count('lost')).toBe(lost)
    expect(await run('colorOf', '#count-lost')).toBe('rgb(179, 38, 30)')
    await page.close()
  })

  it.each([
    ['with', 0],
    ['without', 1],
  ] as const)('race for one number %s If-Match, and the page counts those that are lost', async (word, least) => {
    const { page, count } = await pages.open()
    const before = pages.states.at(-1)!.edits
    if (word === 'without') await page.getByLabel('Without If-Match').check()
    await page.getByLabel('edits each').fill('40')
    await page.getByRole('button', { name: 'Race', exact: true }).click()
    await page.getByText(/^80 edits were answered with success/).waitFor()
    const lost = 80 - (pages.states.at(-1)!.edits - before)
    expect(lost).toBeGreaterThanOrEqual(least)
    if (word === 'with') expect(lost).toBe(0)
    expect([await count('saved'), await count('lost')]).toEqual([80, lost])
    await page.close()
  })
})
