import { collectBytes } from '../body-types/read-body.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { type Reply, rangeReply } from '../core/reply.ts'
import { isLargeBody, type StoredResource } from '../stores/types.ts'
import { addStateFields, cacheControlFor, renditionTag } from './representation.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Makes the content of the selected rendition; the last thing before ranges are selected from it. */
export function render(exchange: ResourceExchange, resource: StoredResource): MaybePromise<void> {
  const { render } = exchange.route.renditions[exchange.rendition]!
  return andThen(readWhole(exchange, resource), (content) =>
    andThen(render(content, exchange), (rendered) => {
      exchange.rendered = typeof rendered === 'string' ? Buffer.from(rendered) : rendered
    }),
  )
}

/** Size of what a GET would send: that of the rendition where one is selected. */
export function selectedSize(exchange: ResourceExchange): number {
  return exchange.rendered === undefined ? exchange.current!.size : exchange.rendered.length
}

/** 200 with a rendition, or 206 with ranges of it. */
export function renditionReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const { route, rendition, ranges } = exchange
  const body = exchange.rendered!
  const fields = ['Content-Type', route.renditions[rendition]!.type]
  addStateFields(fields, resource, route, renditionTag(resource, rendition))
  fields.push('Cache-Control', cacheControlFor(exchange), 'Accept-Ranges', 'bytes')
  if (ranges !== undefined) return rangeReply(ranges, fields, body, body.length)
  return { status: 200, headers: [...fields, 'Content-Length', String(body.length)], body }
}

function readWhole(exchange: ResourceExchange, { body, size }: StoredResource): MaybePromise<Uint8Array> {
  if (typeof body === 'string') return Buffer.from(body)
  if (!isLargeBody(body)) return body
  return collectBytes(body.open(0, size - 1, { signal: exchange.signal }), Number.POSITIVE_INFINITY)
}
