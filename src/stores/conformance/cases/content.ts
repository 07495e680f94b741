import type { Case } from '../types.ts'

export const content: readonly Case[] = []
