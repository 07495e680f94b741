import { readFileSync } from 'node:fs'

/** A code block whose first line is a comment with the path of a file below examples/. */
const BLOCK = /^```(\w+)\n((?:\/\/|#) (examples\/\S+))\n(?:(?!```).*\n)*```$/gm

/** Fills the blocks of a page that name a file with the text of that file, whose first line is that name. */
export function fillProgramBlocks(page) {
  return page.replaceAll(BLOCK, (_, language, line, file) => {
    const text = readFileSync(file, 'utf8')
    if (!text.startsWith(`${line}\n`)) throw new Error(`The first line of ${file} has to be "${line}".`)
    return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\``
  })
}
