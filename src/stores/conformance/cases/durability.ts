import type { Case } from '../types.ts'

export const durability: readonly Case[] = []
