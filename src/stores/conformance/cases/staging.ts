import type { Case } from '../types.ts'

export const staging: readonly Case[] = []
