// Makes the page: one document with its style and its script inside, and nothing from elsewhere.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/**
 * Bundles the page. The script imports `http-resource-service/client`, as the page of a user does.
 * @returns {Promise<{ html: Buffer, policy: string, entityTag: string }>} the document, its Content-Security-Policy, its tag
 */
export async function buildPage() {
  const [template, { outputFiles }] = await Promise.all([
    readFile(new URL('page/index.html', import.meta.url), 'utf8'),
    build({
      entryPoints: ['main.js', 'style.css'].map((name) => ({
        in: fileURLToPath(new URL(`page/${name}`, import.meta.url)),
        out: name,
      })),
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
      charset: 'utf8',
      legalComments: 'none',
      outdir: 'page',
      write: false,
      logLevel: 'silent',
    }),
  ])
  const textOf = (end) => outputFiles.find(({ path }) => path.endsWith(end)).text.trim()
  const [script, style] = [textOf('.js'), textOf('.css')]
  // Functions: `$&` in a replacement text would stand for something else.
  const text = template
    .replace('<!-- style -->', () => `<style>${style}</style>`)
    .replace('<!-- script -->', () => `<script type="module">${script}</script>`)
  const html = Buffer.from(text)
  return { html, policy: policyFor(script, style), entityTag: `"${hash('base64url', html)}"` }
}

/** Only this script and this style run, and they talk to this server alone. */
function policyFor(script, style) {
  return [
    "default-src 'none'",
    `script-src 'sha256-${hash('base64', script)}'`,
    `style-src 'sha256-${hash('base64', style)}'`,
    "connect-src 'self'",
    'img-src data:',
    ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
  ].join('; ')
}

function hash(encoding, content) {
  return createHash('sha256').update(content).digest(encoding)
}
