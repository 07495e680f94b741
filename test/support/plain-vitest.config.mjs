import { fileURLToPath } from 'node:url'

// Vitest as it is without a configuration: it would look for one in the folders above.
export default { cacheDir: fileURLToPath(new URL('../../node_modules/.vite', import.meta.url)) }
