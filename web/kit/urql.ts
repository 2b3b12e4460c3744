// Configures urql: cacheExchange({ keys, resolvers }) and retryExchange().
import type { Exchange, Operation } from '@urql/core'
import { filter, makeSubject, merge, pipe, tap } from 'wonka'
import { delayOf } from './errors.js'

export { keys, resolvers } from './graphcache.js'

/**
 * Returns an exchange that requests a query again while it has no data and its errors are retryable, up to attempts times. It
 * waits as long as the service asks for (retryAfterMs). It delivers the last result; a result with a part of the data, or with
 * a wait of more than a minute, is delivered at once. Put it before the fetchExchange.
 */
export function retryExchange({ attempts = 3 }: { attempts?: number } = {}): Exchange {
  return ({ forward }) => operations$ => {
    const { source: again$, next: send } = makeSubject<Operation>()
    const waiting = new Map<number, { attempt: number; timer?: ReturnType<typeof setTimeout> }>()
    const forget = (key: number) => {
      clearTimeout(waiting.get(key)?.timer)
      waiting.delete(key)
    }
    return pipe(
      merge([pipe(operations$, tap(({ key }) => forget(key))), again$]), // a new request or a teardown ends the retries
      forward,
      filter(({ operation, data, error }) => {
        const attempt = waiting.get(operation.key)?.attempt ?? 0
        const delay = operation.kind === 'query' ? delayOf(data, error?.graphQLErrors ?? [], attempt, attempts) : undefined
        if (delay === undefined) {
          forget(operation.key)
          return true
        }
        waiting.set(operation.key, { attempt: attempt + 1, timer: setTimeout(() => send(operation), delay) })
        return false
      }),
    )
  }
}
