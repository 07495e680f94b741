import type { Case } from '../types.ts'

export const isolation: readonly Case[] = []
