// A minimal streaming multipart/form-data reader: the delimiter is searched with Buffer.indexOf,
// part contents are handed on as subarrays of the incoming chunks (no copy).
const CRLF2 = Buffer.from('\r\n\r\n')
const MAX_HEAD = 16 * 1024

export class RawMultipart {
  constructor(contentType, handlers) {
    const m = /boundary=(?:"([^"]+)"|([^;]+))/i.exec(contentType ?? '')
    if (!m) throw new Error('no boundary')
    this.delim = Buffer.from(`\r\n--${m[1] ?? m[2]}`)
    this.on = handlers
    this.state = 0 // 0 delimiter-or-preamble, 1 after delimiter, 2 part head, 3 part body, 4 done
    this.tail = Buffer.from('\r\n') // so that a delimiter at the very start matches
    this.name = null
    this.isFile = false
    this.value = null
  }

  push(chunk) {
    let buf = this.tail.length ? Buffer.concat([this.tail, chunk]) : chunk
    this.tail = buf.subarray(0, 0)
    const { delim } = this
    for (;;) {
      switch (this.state) {
        case 0: {
          const i = buf.indexOf(delim)
          if (i < 0) {
            this.tail = buf.subarray(Math.max(0, buf.length - delim.length))
            return
          }
          buf = buf.subarray(i + delim.length)
          this.state = 1
          break
        }
        case 1:
          if (buf.length < 2) {
            this.tail = buf
            return
          }
          if (buf[0] === 45 && buf[1] === 45) {
            this.state = 4
            return
          }
          if (buf[0] !== 13 || buf[1] !== 10) throw new Error('bad delimiter')
          buf = buf.subarray(2)
          this.state = 2
          break
        case 2: {
          const i = buf.indexOf(CRLF2)
          if (i < 0) {
            if (buf.length > MAX_HEAD) throw new Error('part head too long')
            this.tail = buf
            return
          }
          this.head(buf.latin1Slice(0, i))
          buf = buf.subarray(i + 4)
          this.state = 3
          break
        }
        case 3: {
          const i = buf.indexOf(delim)
          if (i < 0) {
            // Keep back only what could be the start of a delimiter.
            let keep = 0
            const from = Math.max(0, buf.length - delim.length + 1)
            const cr = buf.indexOf(13, from)
            if (cr >= 0) keep = buf.length - cr
            if (buf.length > keep) this.data(keep ? buf.subarray(0, buf.length - keep) : buf)
            this.tail = keep ? Buffer.from(buf.subarray(buf.length - keep)) : buf.subarray(0, 0)
            return
          }
          if (i > 0) this.data(buf.subarray(0, i))
          if (!this.isFile) {
            this.on.field(this.name, this.value === null ? '' : this.value.toString())
            this.value = null
          }
          buf = buf.subarray(i + delim.length)
          this.state = 1
          break
        }
        default:
          return
      }
    }
  }

  head(text) {
    const m = /content-disposition:[^\r\n]*?;\s*name="([^"]*)"(?:[^\r\n]*?;\s*filename="([^"]*)")?/i.exec(text)
    if (!m) throw new Error('no name')
    this.name = m[1]
    this.isFile = m[2] !== undefined
    if (this.isFile) this.on.file(m[1], m[2])
  }

  data(buf) {
    if (this.isFile) this.on.chunk(buf)
    else this.value = this.value === null ? buf : Buffer.concat([this.value, buf])
  }
}
