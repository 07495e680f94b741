import { UntilLeft } from '../core/until-left.ts'
import type { ListQuery } from '../stores/lists.ts'
import type {
  CreateOptions,
  Expectation,
  ListOptions,
  ReadOptions,
  RelatedWrite,
  RemoveOptions,
  WriteOptions,
} from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'

const NOTHING: readonly RelatedWrite[] = Object.freeze([])

/** Options of a read that ends when the client has left. */
export class ReadUntilLeft extends UntilLeft implements ReadOptions {
  readonly hidden: boolean
  readonly metadataOnly: boolean

  constructor(exchange: ResourceExchange, { hidden = false, metadataOnly = false }: Omit<ReadOptions, 'signal'>) {
    super(exchange)
    this.hidden = hidden
    this.metadataOnly = metadataOnly
  }
}

/** Options of a list that ends when the client has left. */
export class ListUntilLeft extends UntilLeft implements ListOptions {
  readonly after: string | undefined
  readonly limit: number
  readonly hidden: boolean
  readonly query: ListQuery | undefined

  constructor(exchange: ResourceExchange, after: string | undefined, limit: number, query: ListQuery | undefined) {
    super(exchange)
    this.after = after
    this.limit = limit
    this.hidden = exchange.wantsHidden
    this.query = query
  }
}

/** Options of a write that ends when the client has left. */
export class WriteUntilLeft extends UntilLeft implements WriteOptions {
  readonly expect: Expectation
  readonly requires: string | undefined
  /** Its own: a store would otherwise find what pollutes every object. */
  readonly related: readonly RelatedWrite[] = NOTHING

  constructor(exchange: ResourceExchange, expect: Expectation, requires: string | undefined) {
    super(exchange)
    this.expect = expect
    this.requires = requires
  }
}

/** Options of a creation that ends when the client has left. */
export class CreateUntilLeft extends UntilLeft implements CreateOptions {
  readonly related: NonNullable<CreateOptions['related']>
  readonly requires: string | undefined

  constructor(exchange: ResourceExchange, related: CreateUntilLeft['related'], requires: string | undefined) {
    super(exchange)
    this.related = related
    this.requires = requires
  }
}

/** Options of a removal that ends when the client has left. */
export class RemoveUntilLeft extends UntilLeft implements RemoveOptions {
  readonly expect: RemoveOptions['expect']
  readonly related: readonly string[]
  readonly mode: RemoveOptions['mode']
  readonly retention: number | undefined
  readonly below: boolean

  constructor(
    exchange: ResourceExchange,
    expect: RemoveOptions['expect'],
    related: readonly string[],
    { mode, retention, below = false }: Pick<RemoveOptions, 'mode' | 'retention' | 'below'>,
  ) {
    super(exchange)
    this.expect = expect
    this.related = related
    this.mode = mode
    this.retention = retention
    this.below = below
  }
}
