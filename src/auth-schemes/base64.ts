/**
 * Reads padded base64 in its one spelling; `undefined` for anything else. Node ignores what is not base64: credentials
 * would have several spellings.
 */
export function parseBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}
