/**
 * Whether less than a time has passed since a moment. A moment that lies ahead comes from a clock that was put back: by
 * the difference alone, what was kept then would count until the clock is there again.
 * @param since milliseconds since the epoch; `-Infinity` for never
 * @param span milliseconds
 */
export function isWithin(since: number, span: number, now: number = Date.now()): boolean {
  return now >= since && now - since < span
}
