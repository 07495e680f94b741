import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { rollup } from 'rollup'

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
  for (const name of unmerged) if (!written.includes(name)) rmSync(join(folder, name))
}

/** @returns the names of the files that were written */
async function bundleEntries(folder: string, entries: readonly string[]): Promise<string[]> {
  const bundle = await rollup({
    input: Object.fromEntries(entries.map((name) => [name, join(folder, `${name}.js`)])),
    external: (id) => !/^[./]/.test(id),
    // No module does anything when it is imported: what is not used need not be loaded.
    treeshake: { moduleSideEffects: false },
    logLevel: 'silent',
    // Nor need it be loaded first: bundlers warn of an import that takes nothing.
    plugins: [{ name: 'no-bare-imports', renderChunk: (code) => code.replace(/^import '\.[^']+';\n?/gm, '') }],
  })
  const { output } = await bundle.write({
    dir: folder,
    format: 'es',
    experimentalMinChunkSize: SMALL,
    chunkFileNames: 'shared-[hash].js',
    hoistTransitiveImports: false,
  })
  await bundle.close()
  return output.map(({ fileName }) => fileName)
}
