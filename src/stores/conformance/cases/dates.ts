import type { Case } from '../types.ts'

export const dates: readonly Case[] = []
