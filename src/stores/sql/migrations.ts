/**
 * The steps that lead from a version of the schema to the one that this release works with; none when it is that one.
 * @param steps one for each version, which leads to the next
 * @throws Error when the tables were made by a newer release
 */
export function findMigrations<Step>(steps: readonly Step[], version: number, prefix: string): readonly Step[] {
  if (version <= steps.length) return steps.slice(version)
  throw new Error(
    `The tables ${prefix}* have schema version ${version}, and this release knows versions up to ` +
      `${steps.length}. Run the release that made them, or a newer one.`,
  )
}
