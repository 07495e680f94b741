// Minimal copy-on-write JSON Patch (RFC 6902) and merge patch (RFC 7396): the hand-written reference.
const isObj = (v) => v !== null && typeof v === 'object'

export function deepEqual(a, b) {
  if (a === b) return true
  if (!isObj(a) || !isObj(b)) return false
  const arr = Array.isArray(a)
  if (arr !== Array.isArray(b)) return false
  if (arr) {
    if (a.length !== b.length) return false
    for (let i = 0; i < a.length; i++) if (!deepEqual(a[i], b[i])) return false
    return true
  }
  const ka = Object.keys(a)
  if (ka.length !== Object.keys(b).length) return false
  for (const k of ka) if (!Object.hasOwn(b, k) || !deepEqual(a[k], b[k])) return false
  return true
}

export function deepClone(v) {
  if (!isObj(v)) return v
  if (Array.isArray(v)) {
    const out = new Array(v.length)
    for (let i = 0; i < v.length; i++) out[i] = deepClone(v[i])
    return out
  }
  const out = {}
  for (const k of Object.keys(v)) out[k] = deepClone(v[k])
  return out
}

export class PatchError extends Error {}

function parsePointer(p) {
  if (typeof p !== 'string') throw new PatchError('pointer must be a string')
  if (p === '') return []
  if (p.charCodeAt(0) !== 47) throw new PatchError('bad pointer')
  const parts = p.slice(1).split('/')
  if (p.includes('~'))
    for (let i = 0; i < parts.length; i++) parts[i] = parts[i].replaceAll('~1', '/').replaceAll('~0', '~')
  return parts
}

function index(key, len) {
  if (!/^(0|[1-9][0-9]*)$/.test(key)) throw new PatchError('bad index')
  const i = Number(key)
  if (i > len) throw new PatchError('index out of bounds')
  return i
}

function getIn(root, parts, upto) {
  let cur = root
  for (let i = 0; i < upto; i++) {
    const k = parts[i]
    if (Array.isArray(cur)) {
      const n = index(k, cur.length - 1)
      cur = cur[n]
    } else if (isObj(cur) && Object.hasOwn(cur, k)) cur = cur[k]
    else throw new PatchError('path not found')
  }
  return cur
}

/** Returns a new document; the given one is never changed, and untouched branches are shared. */
export function applyJsonPatch(doc, ops) {
  if (!Array.isArray(ops)) throw new PatchError('patch must be an array')
  let root = doc
  const own = new Set()
  const claim = (v) => {
    if (!isObj(v)) throw new PatchError('path not found')
    if (own.has(v)) return v
    const c = Array.isArray(v) ? v.slice() : { ...v }
    own.add(c)
    return c
  }
  const writable = (parts) => {
    root = claim(root)
    let cur = root
    for (let i = 0; i < parts.length - 1; i++) {
      let k = parts[i]
      if (Array.isArray(cur)) k = index(k, cur.length - 1)
      else if (!Object.hasOwn(cur, k)) throw new PatchError('path not found')
      cur = cur[k] = claim(cur[k])
    }
    return cur
  }
  const add = (parts, value) => {
    if (parts.length === 0) {
      root = value
      return
    }
    const at = writable(parts)
    const k = parts[parts.length - 1]
    if (Array.isArray(at)) {
      const i = k === '-' ? at.length : index(k, at.length)
      if (i === at.length) at.push(value)
      else at.splice(i, 0, value)
    } else {
      if (k === '__proto__') throw new PatchError('forbidden member')
      at[k] = value
    }
  }
  const remove = (parts) => {
    if (parts.length === 0) {
      const old = root
      root = null
      return old
    }
    const at = writable(parts)
    const k = parts[parts.length - 1]
    if (Array.isArray(at)) {
      const i = index(k, at.length - 1)
      const old = at[i]
      at.splice(i, 1)
      return old
    }
    if (!Object.hasOwn(at, k)) throw new PatchError('path not found')
    const old = at[k]
    delete at[k]
    return old
  }
  for (const op of ops) {
    const parts = parsePointer(op.path)
    switch (op.op) {
      case 'add':
        if (op.value === undefined) throw new PatchError('value missing')
        add(parts, op.value)
        break
      case 'remove':
        remove(parts)
        break
      case 'replace': {
        if (op.value === undefined) throw new PatchError('value missing')
        if (parts.length === 0) {
          root = op.value
          break
        }
        const at = writable(parts)
        const k = parts[parts.length - 1]
        if (Array.isArray(at)) at[index(k, at.length - 1)] = op.value
        else if (Object.hasOwn(at, k)) at[k] = op.value
        else throw new PatchError('path not found')
        break
      }
      case 'move': {
        const from = parsePointer(op.from)
        if (op.path.startsWith(`${op.from}/`)) throw new PatchError('move into itself')
        add(parts, remove(from))
        break
      }
      case 'copy': {
        const from = parsePointer(op.from)
        add(parts, deepClone(getIn(root, from, from.length)))
        break
      }
      case 'test':
        if (!deepEqual(getIn(root, parts, parts.length), op.value)) throw new PatchError('test failed')
        break
      default:
        throw new PatchError('unknown op')
    }
  }
  return root
}

/** Returns a new document; untouched branches are shared. */
export function applyMergePatch(target, patch) {
  if (!isObj(patch) || Array.isArray(patch)) return patch
  const out = isObj(target) && !Array.isArray(target) ? { ...target } : {}
  for (const k of Object.keys(patch)) {
    const v = patch[k]
    if (v === null) delete out[k]
    else if (k === '__proto__') continue
    else out[k] = isObj(v) && !Array.isArray(v) ? applyMergePatch(out[k], v) : v
  }
  return out
}
