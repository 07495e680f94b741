import type { Case } from '../types.ts'

export const related: readonly Case[] = []
