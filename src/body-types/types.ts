/** Limits on content that is parsed. Streamed content has none. */
export interface BodyLimits {
  /** Bytes of a body that is parsed as a whole: JSON, forms, patches. Default 8 MiB; may be `Infinity`. */
  readonly bodySize: number
  /** Nesting of JSON. Default 100. */
  readonly depth: number
  /**
   * Members and array items of JSON together, where it is parsed for a resource or a patch; more is 413. A document that
   * is stored as it was sent may have more, but cannot be patched. Default 100,000; may be `Infinity`.
   */
  readonly jsonMembers: number
  /** Parameters of a urlencoded form. Default 1000. */
  readonly formFields: number
  /** Parts of a multipart body. Default 110. */
  readonly parts: number
  /** Parts without a file name. Default 100. */
  readonly fields: number
  /** Parts with a file name. Default 10. */
  readonly files: number
  /** Bytes of one part without a file name. Default 64 KiB. */
  readonly fieldSize: number
  /** Bytes of all parts without a file name together. Default 1 MiB. */
  readonly fieldsSize: number
  /** Bytes of one file, in a form or by PUT to the file of an item. Default `Infinity`. */
  readonly fileSize: number
  /** Header fields of one part. Default 32. */
  readonly partHeaders: number
  /** Characters of the name of a part or form field. Default 200. */
  readonly nameLength: number
}

/** A part of a multipart body without a file name, or one parameter of a urlencoded form. */
export interface FormField {
  readonly kind: 'field'
  readonly name: string
  readonly value: string
}

/** A part of a multipart body with a file name. */
export interface FilePart {
  readonly kind: 'file'
  /** Name of the form field. */
  readonly name: string
  /** Cleaned: the last path segment, no control characters. Metadata only; never use it to store anything. */
  readonly filename: string | undefined
  /** Content-Type of the part; `application/octet-stream` when it has none. */
  readonly contentType: string
  /** The bytes, to be read before the next part is asked for; what is not read by then is skipped. */
  readonly content: AsyncIterable<Uint8Array>
}

export type FormPart = FormField | FilePart
