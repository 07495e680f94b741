import { formatLogText } from '../core/diagnostics.ts'
import type { Log } from '../core/operator-log.ts'

/** Called while the items of a collection are indexed that were there before. */
export type ReportIndexing = (
  collection: string,
  progress: { readonly indexed: number; readonly isDone: boolean },
) => void

/** Reports to the log how far the indexing of existing items is. */
export function createIndexReport(log: Log): ReportIndexing {
  return (collection, { indexed, isDone }) => {
    const place = formatLogText(collection === '' ? '/' : collection)
    log({
      level: 'info',
      part: 'index',
      state: isDone ? 'up' : 'down',
      message: isDone
        ? `The items of ${place} are indexed (${indexed}).`
        : `The items of ${place} are being indexed; ${indexed} are done. Lists that need the index are answered 503 until then.`,
    })
  }
}
