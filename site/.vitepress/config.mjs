// The documentation as static pages with a search: npm run docs:site, into site/dist.
import { defineConfig } from 'vitepress'

const page = (text, name) => ({ text, link: `/docs/${name}` })

const guide = [
  { text: 'Overview', link: '/' },
  page('Recipes', 'recipes/'),
  page('Collections', 'collections'),
  page('Patterns', 'patterns'),
  page('Hooks', 'hooks'),
  page('Changes', 'changes'),
  page('Hosts', 'hosts'),
  page('Stores', 'stores'),
  page('A store of your own', 'custom-store'),
  page('Security', 'security'),
  page('Exactly once', 'exactly-once'),
  page('Integrity', 'integrity'),
  page('The client', 'client'),
  page('OpenAPI', 'openapi'),
  page('Observability', 'observability'),
  page('Scale', 'scale'),
  page('Runtimes', 'runtimes'),
]

const recipes = [
  page('A user of the host', 'recipes/user-of-the-host'),
  page('Users see only their own items', 'recipes/owners'),
  page('Timestamps and owner', 'recipes/timestamps'),
  page('Filter, order, count', 'recipes/lists'),
  page('Soft deletion and restore', 'recipes/soft-deletion'),
  page('Audit trail', 'recipes/audit-trail'),
  page('Webhooks', 'recipes/webhooks'),
  page('Live updates', 'recipes/live-updates'),
  page('Files', 'recipes/files'),
  page('Files later', 'recipes/files-later'),
  page('Ids made by clients', 'recipes/client-ids'),
  page('Background work', 'recipes/background-work'),
  page('Replace json-server', 'recipes/json-server'),
  page('react-admin', 'recipes/react-admin'),
  page('Testing an application', 'recipes/testing'),
  page('TypeScript', 'recipes/typescript'),
  page('CommonJS', 'recipes/commonjs'),
  page('Behind nginx', 'recipes/behind-nginx'),
  page('In Docker', 'recipes/docker'),
  page('In Kubernetes', 'recipes/kubernetes'),
  page('A cache in front', 'recipes/caching'),
  page('Metrics and traces', 'recipes/telemetry'),
]

const pieces = [
  'auth',
  'body-parse',
  'conditional',
  'digest-fields',
  'method-override',
  'patch',
  'preflight',
  'range',
  'require-https',
]

const reference = [
  page('Options', 'options'),
  page('Errors', 'errors'),
  page('The store contract', 'store-contract'),
  page('Vocabulary', 'vocabulary'),
  page('How a request flows', 'how-a-request-flows'),
  page('Performance', 'performance'),
  page('RFC 9110 checklist', 'checklist'),
  { text: 'Changes', link: '/CHANGELOG' },
]

const migration = [
  page('From cors + express.json + send', 'migration/express'),
  page('From json-server', 'migration/json-server'),
  page('From hand-written routes', 'migration/hand-written'),
]

/** Makes an anchor of a heading as GitHub does, so that one link works in both places. */
function formatAnchor(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

/** README.md is the start page: links of pages to it lead there. */
function linkStartPage(md) {
  md.core.ruler.push('start-page', ({ tokens }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const hash = /^(?:\.\.\/)+README\.md(#.*)?$/.exec(token.attrGet('href') ?? '')
      if (hash) token.attrSet('href', `/${hash[1] ?? ''}`)
    }
  })
}

export default defineConfig({
  title: 'http-resource-service',
  description: 'URI-addressed resources over the standard HTTP methods, for the Node server you already have',
  srcDir: '..',
  srcExclude: ['bench/**', 'examples/**', 'test/**', 'site/**', 'src/**', '.tmp/**', 'coverage/**'],
  rewrites: { 'README.md': 'index.md' },
  outDir: './dist',
  cacheDir: '../node_modules/.cache/vitepress',
  cleanUrls: true,
  metaChunk: true,
  markdown: {
    anchor: { slugify: formatAnchor },
    config: linkStartPage,
    // The default themes have comments and words of less contrast than 4.5 (WCAG 2.2, 1.4.3).
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  themeConfig: {
    search: {
      provider: 'local',
      options: {
        miniSearch: { searchOptions: { combineWith: 'AND', fuzzy: 0.1, boost: { title: 4, text: 2, titles: 1 } } },
        // The names of a thousand tests would hide the pages.
        _render: (source, env, markdown) =>
          env.relativePath === 'docs/checklist.md' ? '' : markdown.render(source, env),
      },
    },
    outline: [2, 3],
    sidebar: [
      { text: 'Guide', items: guide },
      { text: 'Recipes', items: recipes },
      { text: 'Reference', items: reference },
      { text: 'Standalone middleware', collapsed: true, items: pieces.map((name) => page(name, `middleware/${name}`)) },
      { text: 'Migration', collapsed: true, items: migration },
    ],
  },
})
