import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Plugin, rollup } from 'rollup'

/** Bytes below which a shared file is merged with one that is nearly always loaded beside it. */
const SMALL = 12_000

/**
 * Merges the many small files that the entries share: to open a file costs more than a few functions that are not called.
 * @param folder where the built files are
 * @param entries their names, without the extension
 */
export async function mergeChunks(folder: string, entries: readonly string[]): Promise<void> {
  const unmerged = readdirSync(folder).filter((name) => /^[\w-]+-[A-Z0-9]{8}\.js$/.test(name))
  const written = [
    // A chunk that is shared with the server would bring modules of Node into browsers.
    ...(await bundleEntries(folder, ['client'])),
    ...(await bundleEntries(
      folder,
      entries.filter((name) => name !== 'client'),
    )),
  ]
  // An earlier build's merged file may have a name of the same form.
  for (const name of unmerged.filter((name) => !written.includes(name))) {
    rmSync(join(folder, name))
    rmSync(join(folder, `${name}.map`), { force: true })
  }
}

/** Goes on with the maps of the first pass, which lead to the sources. */
const readSourceMaps: Plugin = {
  name: 'read-source-maps',
  load: (id) => ({ code: readFileSync(id, 'utf8'), map: readFileSync(`${id}.map`, 'utf8') }),
}

/** What need not be loaded need not be loaded first: bundlers warn of an import that takes nothing. */
const removeBareImports: Plugin = {
  name: 'remove-bare-imports',
  // The line stays, so that the map holds.
  renderChunk: (code) => ({ code: code.replace(/^import '\.[^']+';$/gm, ''), map: null }),
}

/** @returns the names of the files that were written */
async function bundleEntries(folder: string, entries: readonly string[]): Promise<string[]> {
  const bundle = await rollup({
    input: Object.fromEntries(entries.map((name) => [name, join(folder, `${name}.js`)])),
    external: (id) => !/^[./]/.test(id),
    // No module does anything when it is imported: what is not used need not be loaded.
    treeshake: { moduleSideEffects: false },
    logLevel: 'silent',
    plugins: [readSourceMaps, removeBareImports],
  })
  const { output } = await bundle.write({
    dir: folder,
    format: 'es',
    experimentalMinChunkSize: SMALL,
    chunkFileNames: 'shared-[hash].js',
    hoistTransitiveImports: false,
    sourcemap: true,
    // Names and lines of the sources are enough for a stack trace; the text of all of them would double the package. Of the
    // client it is there: bundlers of pages ask for it.
    sourcemapExcludeSources: !entries.includes('client'),
  })
  await bundle.close()
  return output.map(({ fileName }) => fileName)
}
