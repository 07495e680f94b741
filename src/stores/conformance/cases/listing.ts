import type { Case } from '../types.ts'

export const listing: readonly Case[] = []
