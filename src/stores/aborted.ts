import { UntilLeft } from '../core/until-left.ts'

/** Options of a call that its caller may give up. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined
}

/** Whether a call was aborted before it began. Options of the service tell it without making their signal. */
export function isAborted(options: Abortable): boolean {
  return options instanceof UntilLeft ? options.isAborted : options.signal?.aborted === true
}

/** @throws the reason of the signal */
export function throwIfAborted(options: Abortable): void {
  if (isAborted(options)) options.signal!.throwIfAborted()
}
