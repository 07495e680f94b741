import type { Reply } from '../core/reply.ts'
import { memberPath } from '../stores/paths.ts'
import {
  type Content,
  type ContentFields,
  isStaged,
  type NewState,
  type SmallBody,
  type StoredResource,
  sizeOf,
  type WriteConflict,
} from '../stores/types.ts'
import { discardContent } from './content.ts'
import { recordAnswer, repeatAnswer } from './keyed-request.ts'
import type { NewMember } from './new-member.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** A member that is made once for a key: with the record of its answer in the same atomic step. */
export interface Once {
  readonly member: NewMember
  /** The answer that was recorded. */
  reply(): Reply
  /**
   * The answer of the request that was faster; what came with this one is given up. `undefined` where that has expired, and
   * the member is to be made after all.
   */
  lose(conflict: WriteConflict): Promise<Reply | undefined>
}

/** @param toReply makes the answer from the new state, as far as that is known before it is written */
export function createOnce(
  exchange: ResourceExchange,
  member: NewMember,
  toReply: (exchange: ResourceExchange, resource: StoredResource) => Reply,
): Once {
  const { storePath } = exchange
  let contents: readonly Content[] = []
  let reply: Reply | undefined

  return {
    member: {
      content: member.content,
      related(name, state) {
        const content = member.content(name)
        const others = member.related(name)
        contents = [content, ...others.map((write) => write.content)]
        const path = memberPath(storePath === '/' ? '' : storePath, name)
        const recorded = recordAnswer(exchange, toReply(exchange, foresee(path, content, state)))
        reply = recorded.reply
        return [...others, recorded.write]
      },
    },

    reply: () => reply!,

    async lose({ related }) {
      let reply: Reply | undefined
      let isOver = true
      try {
        reply = await repeatAnswer(exchange, related!)
        isOver = reply !== undefined
      } finally {
        if (isOver) for (const content of contents) await discardContent(content)
      }
      return reply
    },
  }
}

/**
 * A state that is about to be written, without its dates. Of content that is not at hand the answer shows nothing.
 * @throws TypeError for a store that supports `relatedExpect` and does not say how the state will be called
 */
export function foresee(
  path: string,
  { body, contentType, contentLanguage, filename }: ContentFields & { readonly body: Content['body'] },
  state: NewState | undefined,
): StoredResource {
  if (state === undefined) throw new TypeError('The store supports relatedExpect and passes no new state to related.')
  const small: SmallBody = typeof body === 'string' || body instanceof Uint8Array ? body : ''
  const size = isStaged(body) ? body.size : sizeOf(small)
  return { path, ...state, contentType, contentLanguage, filename, size, body: small }
}
