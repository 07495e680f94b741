// examples/recipes/testing/commonjs/jest.config.cjs
module.exports = {
  transform: { '/node_modules/(http-resource-service|jose)/.*\\.js$': '<rootDir>/to-commonjs.cjs' }, // beside those that you have
  transformIgnorePatterns: ['/node_modules/(?!(http-resource-service|jose)/)'],
}
