import type { Reply } from '../core/reply.ts'
import { memberPath, type StoredResource, type WriteConflict } from '../stores/types.ts'
import { foresee } from './foreseen-state.ts'
import { recordAnswer, repeatAnswer } from './keyed-request.ts'
import type { NewMember } from './new-member.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** A member that is made once for a key: with the record of its answer in the same atomic step. */
export interface Once {
  readonly member: NewMember
  /** The answer that was recorded. */
  reply(): Reply
  /** The answer of the request that was faster; `undefined` where that has expired, and the member is to be made after all. */
  lose(conflict: WriteConflict): Promise<Reply | undefined>
}

/** @param toReply makes the answer from the new state, as far as that is known before it is written */
export function createOnce(
  exchange: ResourceExchange,
  member: NewMember,
  toReply: (exchange: ResourceExchange, resource: StoredResource) => Reply,
): Once {
  const { storePath } = exchange
  let reply: Reply | undefined

  return {
    member: {
      ...member,
      related(name, state) {
        const content = member.content(name)
        const others = member.related(name, state)
        const path = memberPath(storePath === '/' ? '' : storePath, name)
        const recorded = recordAnswer(exchange, toReply(exchange, foresee(path, content, state)))
        reply = recorded.reply
        // First, so that a repetition is recognized before anything else stands in its way.
        return [recorded.write, ...others]
      },
    },

    reply: () => reply!,

    lose: ({ related }) => repeatAnswer(exchange, related!),
  }
}
