import type { Case } from '../types.ts'

export const ranges: readonly Case[] = []
