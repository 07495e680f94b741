/** What comes back instead where a runtime differs, by its name and the title of the case. docs/runtimes.md explains it. */
export const DIFFERENCES: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>> = {
  bun: {
    'answers OPTIONS * for the server (RFC 9110 §9.3.7)': [400],
  },
  workerd: {
    'says its length in answer to GET, and sends no chunks (RFC 9110 §8.6)': [200, undefined, 'chunked', 'nosniff'],
    'sends a range (RFC 9110 §14.2)': [206, 'bytes 10-19/1048576', undefined],
    'answers OPTIONS * for the server (RFC 9110 §9.3.7)': [500],
    'refuses a method in lower case (RFC 9110 §9.1)': [501],
    'asks for credentials in three schemes, each in a field of its own (RFC 9110 §11.6.1)': [401, ['Bearer']],
    'sends 100 before it reads content that the client holds back (RFC 9110 §10.1.1)': [201],
    'refuses another expectation (RFC 9110 §15.5.18)': [200],
    'takes the absolute form of a target (RFC 9112 §3.2.2)': [500],
    'refuses dot segments in a target': [200],
    'refuses two Host fields (RFC 9112 §3.2)': [500],
    'refuses two lengths (RFC 9112 §6.3)': [500],
    'refuses a chunk whose size is none (RFC 9112 §7.1)': [500],
    'refuses a space before the colon (RFC 9112 §5.1)': [200],
    'refuses a folded line (RFC 9112 §5.2)': [200],
    'refuses a header section that is too large (RFC 6585 §5)': [200],
  },
}
