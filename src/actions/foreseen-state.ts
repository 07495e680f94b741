import {
  type Content,
  type ContentFields,
  isStaged,
  type NewState,
  type SmallBody,
  type StoredResource,
  sizeOf,
} from '../stores/types.ts'

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
