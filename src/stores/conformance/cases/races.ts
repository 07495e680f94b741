import type { Case } from '../types.ts'

export const races: readonly Case[] = []
