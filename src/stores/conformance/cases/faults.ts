import type { Case } from '../types.ts'

export const faults: readonly Case[] = []
