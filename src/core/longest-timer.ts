/** Milliseconds of the longest timer: timers take 32 bits, and a longer one fires at once. */
export const LONGEST_TIMER: number = 2 ** 31 - 1
