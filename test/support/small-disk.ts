import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SqliteHandle } from '../../src/stores/sqlite.ts'

/** A file system of a few megabytes. */
export interface SmallDisk {
  readonly folder: string
  /** A handle whose commits fail when the disk is full, where the file system itself does not see to it. */
  limit<Handle extends SqliteHandle>(handle: Handle): Handle
  /** Bytes that are free. */
  free(): number
  remove(): void
}

export type DiskKind = 'simulated' | 'tmpfs'

/** `simulated` works everywhere; `tmpfs` is added where this process may mount one. */
export const diskKinds: readonly DiskKind[] = canMount() ? ['simulated', 'tmpfs'] : ['simulated']

export function createSmallDisk(kind: DiskKind, bytes: number): SmallDisk {
  return kind === 'simulated' ? simulateDisk(bytes) : mountDisk(bytes)
}

const simulated = new Map<string, () => number>()

/** The bytes that are free on a simulated disk; `undefined` for a file that lies on another one. */
export function findSimulatedRoom(file: string): number | undefined {
  for (const [folder, free] of simulated) if (file.startsWith(folder)) return free()
  return undefined
}

function simulateDisk(bytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'small-disk-'))
  const free = (): number => {
    const sizes = readdirSync(folder).map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
    return Math.max(0, bytes - sizes.reduce((sum, size) => sum + size, 0))
  }
  simulated.set(folder, free)
  return {
    folder,
    free,
    // Commits are what makes the log grow.
    limit<Handle extends SqliteHandle>(handle: Handle): Handle {
      return new Proxy(handle, {
        get(target, name) {
          const value = Reflect.get(target, name) as unknown
          if (typeof value !== 'function') return value
          if (name !== 'exec') return value.bind(target)
          return (sql: string): unknown => {
            if (sql !== 'COMMIT' || free() > 0) return target.exec(sql)
            target.exec('ROLLBACK')
            throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL', rawCode: 13 })
          }
        },
      })
    },
    remove() {
      simulated.delete(folder)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'small-disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1048576', 'none', folder])
  if (status === 0) execFileSync('umount', [folder])
  rmSync(folder, { recursive: true, force: true })
  return status === 0
}

function mountDisk(bytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'small-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'none', folder])
  return {
    folder,
    limit: (handle) => handle,
    free() {
      const { bavail, bsize } = statfsSync(folder)
      return bavail * bsize
    },
    remove() {
      execFileSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
