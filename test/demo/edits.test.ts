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

/** What the page does for one editor: types, saves, and chooses at random where there is a conflict. */
interface Driver {
  edit(pane: string, number: number): Promise<TypedEdit>
}

/** Runs in the page. */
function createDriver(): Driver {
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(Math.random() * values.length)]!
  const isBusy = (button: Element): boolean => button.getAttribute('aria-disabled') === 'true'
  return {
    async edit(pane, number) {
      const host = document.getElementById(pane)!
      const name = pick(['title', 'place', 'edits'] as const)
      const input = host.querySelector<HTMLInputElement>(`[data-name="${name}"]`)!
      const value = name === 'edits' ? number : `${pane} ${number}`
      input.value = String(value)
      input.dispatchEvent(new Event('input'))
      const save = [...host.querySelectorAll('button')].find((button) => button.textContent!.startsWith('Save as'))!
      save.click()
      let isWithdrawn = false
      while (isBusy(save)) {
        const conflict = host.querySelector('.conflict')
        if (conflict !== null) {
          const side = pick(['mine', 'theirs'])
          isWithdrawn = side === 'theirs'
          conflict.querySelector<HTMLInputElement>(`input[value=${side}]`)!.click()
          conflict.querySelector('button')!.click()
        }
        await new Promise((resolve) => setTimeout(resolve))
      }
      return { pane, name, value, isWithdrawn } as TypedEdit
    },
  }
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
    const { page, faults, count } = await pages.open()
    const first = pages.states.length - 1
    const edits = await page.evaluate(
      async ([source, each]) => {
        const driver = new Function(`return (${source})()`)() as Driver
        const run = async (pane: string, from: number): Promise<readonly TypedEdit[]> => {
          const typed: TypedEdit[] = []
          for (let i = 0; i < each; i++) typed.push(await driver.edit(pane, from + i))
          return typed
        }
        return (await Promise.all([run('ada', 1000), run('grace', 2000)])).flat()
      },
      [createDriver.toString(), 250] as const,
    )
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
    const { page, count } = await pages.open({ colorScheme: 'light' })
    await page.getByLabel('Without If-Match').check()
    const first = pages.states.length - 1
    const edits = await page.evaluate(async (source) => {
      const driver = new Function(`return (${source})()`)() as Driver
      const typed: TypedEdit[] = []
      for (let i = 0; i < 40; i++) typed.push(await driver.edit(Math.random() < 0.5 ? 'ada' : 'grace', 5000 + i))
      return typed
    }, createDriver.toString())
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
    const color = await page.locator('#count-lost').evaluate((element) => getComputedStyle(element).color)
    expect(color).toBe('rgb(179, 38, 30)')
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
