import type { DownloadOptions, DownloadResult, UploadContent, UploadOptions, UploadResult } from './content.ts'
import type { AnyResources, At, ClientDefinitions, PathParameters, PathsWith } from './definition-paths.ts'
import type { EditOptions, EditResult } from './edit.ts'
import type { List, ListedItem, ListOptions } from './list.ts'
import type { ReadResult, WaitResult } from './read.ts'
import type { Operation, ResourceDocument, ResourceHandle } from './results.ts'
import type { RequestOptions } from './transport.ts'
import type { CreateContent, CreateOptions, CreateResult, RemoveResult, ReplaceResult } from './write.ts'

type Output<Resources, Path extends string> = At<Resources, Path>['output']
type Input<Resources, Path extends string> = At<Resources, Path>['input']

/** The path of the items of a collection. */
type ItemPath<Path extends string> = string extends Path ? string : Path extends '/' ? '/{id}' : `${Path}/{id}`

/** Gives a document as it is to be, from a copy that it may change. */
export type DocumentChange<Resources, Path extends string> = (
  value: Output<Resources, Path>,
) => Output<Resources, Path> | Input<Resources, Path> | PromiseLike<Output<Resources, Path> | Input<Resources, Path>>

/**
 * A client of a service, typed by its definitions. A path is followed by the values of its parameters, if it has any:
 * `read('/users/{id}', { id: 42 })`.
 *
 * Results are distinguished by `ok` and `status`. A refusal that the protocol foresees is a result. Anything else throws a
 * `ResponseError`: no answer, an unexpected status, content that is not JSON. An abort throws the reason of the signal.
 */
export interface ResourceClient<Resources extends ClientDefinitions | AnyResources = AnyResources> {
  /** Reads a JSON document, with the tag of its state. What has not changed is not transferred again (304). */
  read<Path extends PathsWith<Resources, 'GET', 'resource', 'json'>>(
    path: Path,
    ...args: [...PathParameters<Path>, options?: RequestOptions]
  ): Promise<ReadResult<Output<Resources, Path>, Path>>
  read<Path extends PathsWith<Resources, 'GET', 'resource', 'json'>>(
    document: ResourceHandle<Path>,
    options?: RequestOptions,
  ): Promise<ReadResult<Output<Resources, Path>, Path>>

  /** Lists the items of a collection; further pages are read as they are needed. */
  list<Path extends PathsWith<Resources, 'GET', 'collection', 'json' | 'raw'>>(
    path: Path,
    ...args: [...PathParameters<Path>, options?: ListOptions<At<Resources, Path>>]
  ): List<ListedItem<At<Resources, Path>>>

  /**
   * Creates an item under an Idempotency-Key. When no answer comes, a second attempt is made only where the server is
   * known to keep keys: see `repeat`. Otherwise it throws, since the item may exist.
   */
  create<Path extends PathsWith<Resources, 'POST', 'collection', 'json' | 'raw'>>(
    path: Path,
    ...args: [...PathParameters<Path>, content: CreateContent<At<Resources, Path>>, options?: CreateOptions]
  ): Promise<CreateResult<At<Resources, Path>, ItemPath<Path>>>

  /**
   * Replaces the document that was read, as long as it is in that state (412 otherwise).
   * @throws TypeError for a document without ETag and Last-Modified
   */
  replace<Path extends PathsWith<Resources, 'PUT', 'resource', 'json'>>(
    document: ResourceHandle<Path>,
    value: Input<Resources, Path>,
    options?: RequestOptions,
  ): Promise<ReplaceResult<At<Resources, Path>, Path>>
  /** Replaces a document in any state, which must exist, or creates it where it is absent. */
  replace<Path extends PathsWith<Resources, 'PUT', 'resource', 'json'>>(
    path: Path,
    ...args: [...PathParameters<Path>, match: 'any' | 'absent', value: Input<Resources, Path>, options?: RequestOptions]
  ): Promise<ReplaceResult<At<Resources, Path>, Path>>

  /**
   * Changes a document and sends the difference as a patch for the state that was read. When others were faster, the
   * function is called again with their document; a value is merged with it.
   * @throws TypeError for a document without ETag and Last-Modified
   */
  edit<Path extends PathsWith<Resources, 'PATCH', 'resource', 'json'>>(
    document: ResourceDocument<unknown, Path>,
    change: DocumentChange<Resources, Path> | Output<Resources, Path> | Input<Resources, Path>,
    options?: EditOptions,
  ): Promise<EditResult<Output<Resources, Path>, Path>>
  edit<Path extends PathsWith<Resources, 'PATCH', 'resource', 'json'>>(
    path: PathParameters<Path> extends [] ? Path : never,
    change: DocumentChange<Resources, Path>,
    options?: EditOptions,
  ): Promise<EditResult<Output<Resources, Path>, Path>>
  edit<Path extends PathsWith<Resources, 'PATCH', 'resource', 'json'>>(
    path: Path,
    parameters: PathParameters<Path>[0],
    change: DocumentChange<Resources, Path>,
    options?: EditOptions,
  ): Promise<EditResult<Output<Resources, Path>, Path>>

  /** Removes the resource that was read, as long as it is in that state (412 otherwise). */
  remove<Path extends PathsWith<Resources, 'DELETE', 'resource', 'json' | 'raw'>>(
    document: ResourceHandle<Path>,
    options?: RequestOptions,
  ): Promise<RemoveResult<At<Resources, Path>>>
  /** Removes a resource in any state. */
  remove<Path extends PathsWith<Resources, 'DELETE', 'resource', 'json' | 'raw'>>(
    path: Path,
    ...args: [...PathParameters<Path>, match: 'any', options?: RequestOptions]
  ): Promise<RemoveResult<At<Resources, Path>>>

  /** Stores content byte for byte in place of the state that was read. */
  upload<Path extends PathsWith<Resources, 'PUT', 'resource', 'raw'>>(
    resource: ResourceHandle<Path>,
    content: UploadContent,
    options?: UploadOptions,
  ): Promise<UploadResult<Path>>
  /** Stores content in place of any state, which must exist, or creates the resource where it is absent. */
  upload<Path extends PathsWith<Resources, 'PUT', 'resource', 'raw'>>(
    path: Path,
    ...args: [...PathParameters<Path>, match: 'any' | 'absent', content: UploadContent, options?: UploadOptions]
  ): Promise<UploadResult<Path>>

  /** Opens content. A transfer that breaks is continued where it broke, as long as the state is the same (If-Range). */
  download<Path extends PathsWith<Resources, 'GET', 'resource', 'raw'>>(
    path: Path,
    ...args: [...PathParameters<Path>, options?: DownloadOptions]
  ): Promise<DownloadResult<Path>>
  download<Path extends PathsWith<Resources, 'GET', 'resource', 'raw'>>(
    resource: ResourceHandle<Path>,
    options?: DownloadOptions,
  ): Promise<DownloadResult<Path>>

  /**
   * Waits for accepted work, as long as the signal allows, and looks when the server says (Retry-After).
   * @returns the monitor at the end; its `state` says how the work ended
   */
  wait<Value>(operation: Operation<Value>, options?: RequestOptions): Promise<WaitResult<Value>>
}
