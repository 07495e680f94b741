// examples/recipes/testing/commonjs/to-commonjs.cjs
const { transformSync } = require('esbuild')

/** @param {string} text @param {string} file */
exports.process = (text, file) =>
  transformSync(text, { sourcefile: file, sourcemap: 'inline', format: 'cjs', supported: { 'dynamic-import': false } })
