interface Abortable {
  readonly signal?: AbortSignal | undefined
}

/**
 * Whether a call was aborted before it began. The service passes options that tell so without their signal, which they
 * make when it is first read.
 */
export function isAborted(options: Abortable): boolean {
  return (options as { readonly isAborted?: boolean }).isAborted ?? options.signal?.aborted === true
}

/** @throws the reason of the signal */
export function throwIfAborted(options: Abortable): void {
  if (isAborted(options)) options.signal!.throwIfAborted()
}
