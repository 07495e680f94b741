/** For tests that measure time or memory: what else the machine does may spoil one attempt, a defect spoils each. */
export const MEASURED = { retry: 2 }
