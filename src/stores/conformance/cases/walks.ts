import type { Case } from '../types.ts'

export const walks: readonly Case[] = []
