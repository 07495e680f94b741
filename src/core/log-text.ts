/**
 * Controls (C0, DEL, C1), format characters such as those that change the direction of text, line and paragraph separators,
 * and lone surrogates: a client's text must neither forge a line of a log nor command the terminal that shows it.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Text for one line of a log, with everything that is not plainly visible written as `\u{9b}`. */
export function formatLogText(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}
