// Subscriptions of GraphiQL over graphql-transport-ws. GraphiQL shows the last events as a list. After a failure it shows an error
// that says what to do.
import { CloseCode, createClient } from 'graphql-ws/client'

interface Params { query: string; operationName?: string | null; variables?: unknown }

/** What to do about each code that closes the socket. */
const advice: Record<number, string> = {
  [CloseCode.Forbidden]: 'The server refused the headers: X-Venue-Credentials must be base64 of {"apiKey","secret","passphrase"}.',
  [CloseCode.Unauthorized]: 'The server has not acknowledged the connection: run the subscription again.',
  [CloseCode.BadRequest]: 'The server could not read the request: check the variables and headers.',
}

/** Returns the response that GraphiQL shows for the event or error that ended a subscription. */
export function failure(problem: unknown): { errors: { message: string; extensions?: object }[] } {
  if (Array.isArray(problem)) return { errors: problem }
  const { code, reason } = problem as Partial<CloseEvent>
  if (code === undefined) return { errors: [{ message: 'The server cannot be reached: it was tried several times. Check that it runs, then run the subscription again.' }] }
  const message = [advice[code] ?? 'The server closed the connection: run the subscription again.', reason].filter(Boolean).join(' ')
  return { errors: [{ message, extensions: { closeCode: code } }] }
}

/** The number of events that the log keeps. */
const kept = 20

/** Subscribes with headers in connection_init. It opens a lost connection again up to five times in a row. */
export function subscribe(url: string, { query, operationName, variables }: Params, headers: Record<string, unknown> = {}): AsyncIterableIterator<unknown> {
  const refused: number[] = [CloseCode.Forbidden, CloseCode.Unauthorized, CloseCode.BadRequest]
  const client = createClient({
    url, connectionParams: headers, retryAttempts: 5,
    shouldRetry: event => !refused.includes((event as Partial<CloseEvent>).code ?? 0),
  })
  const events = client.iterate({ query, operationName: operationName ?? null, variables: (variables ?? {}) as Record<string, unknown> })
  let log: object[] = []
  let count = 0
  let ended = false
  const end = () => {
    ended = true
    void client.dispose()
  }
  return {
    [Symbol.asyncIterator]() { return this },
    async next() {
      if (ended) return { done: true, value: undefined }
      try {
        const event = await events.next()
        if (event.done) {
          end()
          return event
        }
        log = [{ at: new Date().toISOString(), ...event.value }, ...log].slice(0, kept)
        return { done: false, value: { count: ++count, events: log } }
      } catch (problem) {
        end()
        return { done: false, value: failure(problem) }
      }
    },
    async return() {
      await events.return?.()
      end()
      return { done: true, value: undefined }
    },
  }
}
