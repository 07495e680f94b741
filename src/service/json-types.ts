import { isJsonType } from '../protocol/media-type.ts'

export const JSON_ONLY: readonly string[] = ['application/json']

/** Whether all content of a media range is JSON. */
export function isJsonRange(range: string): boolean {
  return isJsonType(range) || range === '*/*+json'
}
