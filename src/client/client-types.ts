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

/**
 * What a request is for. One parameter instead of two overloads: an error about the arguments behind a path would name the
 * overload for a document.
 */
type PathOrHandle<Path extends string> = Path | ResourceHandle<Path>
type PathOf<Target> = Target extends ResourceHandle<infer Path> ? Path : Target & string
/** The arguments between the target and the content: behind a path the values of its parameters, and the state that is meant. */
type Address<Target, Match extends readonly unknown[] = []> = Target extends string
  ? [...PathParameters<Target>, ...Match]
  : []

/** Gives a document as it is to be, from a copy that it may change. */
export type DocumentChange<Resources, Path extends string> = (
  value: Output<Resources, Path>,
) => Output<Resources, Path> | Input<Resources, Path> | PromiseLike<Output<Resources, Path> | Input<Resources, Path>>

/**
 * A client of a service, typed by its definitions. A path is followed by the values of its parameters, if it has any:
 * `read('/users/{id}', { id: 42 })`.
 *
 * Results are distinguished by `ok` and `status`. A refusal that the protocol foresees is a result. Anything else throws a
 * `ResponseError`: no response, an unexpected status, content that is not JSON. An abort throws the reason of the signal.
 */
export interface ResourceClient<Resources extends ClientDefinitions | AnyResources = AnyResources> {
  /** Reads a JSON document, with the tag of its state. What has not changed is not transferred again (304). */
  read<const Target extends PathOrHandle<PathsWith<Resources, 'GET', 'resource', 'json'>>>(
    target: Target,
    ...args: [...Address<Target>, options?: RequestOptions]
  ): Promise<ReadResult<Output<Resources, PathOf<Target>>, PathOf<Target>>>

  /** Lists the items of a collection; further pages are read as they are needed. */
  list<Path extends PathsWith<Resources, 'GET', 'collection', 'json' | 'raw'>>(
    path: Path,
    ...args: [...PathParameters<Path>, options?: ListOptions<At<Resources, Path>>]
  ): List<ListedItem<At<Resources, Path>>>

  /**
   * Creates an item under an Idempotency-Key. When no response comes, a second attempt is made only where the server is
   * known to keep keys: see `repeat`. Otherwise it throws, since the item may exist.
   */
  create<Path extends PathsWith<Resources, 'POST', 'collection', 'json' | 'raw'>>(
    path: Path,
    ...args: [...PathParameters<Path>, content: CreateContent<At<Resources, Path>>, options?: CreateOptions]
  ): Promise<CreateResult<At<Resources, Path>, ItemPath<Path>>>

  /**
   * Replaces the document that was read, as long as it is in that state (412 otherwise). Behind a path: a document in any
   * state, which must exist, or one that is absent.
   * @throws TypeError for a document without ETag and Last-Modified
   */
  replace<const Target extends PathOrHandle<PathsWith<Resources, 'PUT', 'resource', 'json'>>>(
    target: Target,
    ...args: [
      ...Address<Target, [match: 'any' | 'absent']>,
      value: Input<Resources, PathOf<Target>>,
      options?: RequestOptions,
    ]
  ): Promise<ReplaceResult<At<Resources, PathOf<Target>>, PathOf<Target>>>

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

  /** Removes the resource that was read, as long as it is in that state (412 otherwise). Behind a path: in any state. */
  remove<const Target extends PathOrHandle<PathsWith<Resources, 'DELETE', 'resource', 'json' | 'raw'>>>(
    target: Target,
    ...args: [...Address<Target, [match: 'any']>, options?: RequestOptions]
  ): Promise<RemoveResult<At<Resources, PathOf<Target>>>>

  /**
   * Stores content byte for byte in place of the state that was read. Behind a path: of any state, which must exist, or
   * where the resource is absent.
   */
  upload<const Target extends PathOrHandle<PathsWith<Resources, 'PUT', 'resource', 'raw'>>>(
    target: Target,
    ...args: [...Address<Target, [match: 'any' | 'absent']>, content: UploadContent, options?: UploadOptions]
  ): Promise<UploadResult<PathOf<Target>>>

  /** Opens content. A transfer that breaks is continued where it broke, as long as the state is the same (If-Range). */
  download<const Target extends PathOrHandle<PathsWith<Resources, 'GET', 'resource', 'raw'>>>(
    target: Target,
    ...args: [...Address<Target>, options?: DownloadOptions]
  ): Promise<DownloadResult<PathOf<Target>>>

  /**
   * Waits for accepted work, as long as the signal allows, and asks again at the time of Retry-After.
   * @returns the accepted item, or the monitor of a removal, at the end; its `state` says how the work ended
   */
  wait<Value>(operation: Operation<Value>, options?: RequestOptions): Promise<WaitResult<Value>>
}
