import { it } from 'vitest'
it('x', async () => { try { await import('../../src/core/node-handler.ts') } catch (e) { console.log('ERR', e, (e as Error).stack) } })
