// Configures urql: cacheExchange({ keys, resolvers }) and retryExchange().
import { makeOperation, type CombinedError, type Exchange, type Operation } from '@urql/core'
import { filter, makeSubject, map, merge, pipe, tap } from 'wonka'
import { delayOf, delayOfFailure } from './errors.js'
import { documentIds, persistedQuery, type Manifest } from './persisted.js'

export { keys, resolvers } from './graphcache.js'

/**
 * Returns an exchange that sends a query again if the result has no data and a retryable error, at most attempts times. Before each
 * retry the exchange waits as long as the service asks for (retryAfterMs). The exchange delivers only the last result. It does not
 * retry if the result has a part of the data, or if the wait would be more than a minute. It also retries requests without a
 * response, and after the statuses 429, 502, 503 and 504. Put the exchange before the fetchExchange.
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
        const delay = operation.kind === 'query' ? delayOfResult(data, error, attempt, attempts) : undefined
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

function delayOfResult(data: unknown, error: CombinedError | undefined, attempt: number, attempts: number): number | undefined {
  const response = error?.response as Response | undefined
  if (!error?.networkError) return delayOf(data, error?.graphQLErrors ?? [], attempt, attempts)
  if (!response && !(error.networkError instanceof TypeError)) return undefined // such as AbortError; fetch throws TypeErrors
  return delayOfFailure({ status: response?.status, retryAfter: response?.headers.get('Retry-After') }, attempt, attempts)
}

/**
 * Returns an exchange that sends the id of a trusted document in place of its text. The exchange sends documents that are not in
 * the manifest as text. Put the exchange before the fetchExchange and the subscriptionExchange. The id is part of a request's
 * extensions, so the forwardSubscription of the subscriptionExchange must pass extensions on. For subscriptions, give graphql-ws the
 * option jsonMessageReplacer: withoutPersistedText.
 */
export function persistedExchange(manifest: Manifest): Exchange {
  const ids = documentIds(manifest)
  return ({ forward }) => operations$ => pipe(operations$, map(operation => {
    const definition = operation.query.definitions.find(({ kind }) => kind === 'OperationDefinition')
    const id = definition && 'name' in definition ? ids.get(definition.name?.value ?? '') : undefined
    if (id === undefined || operation.kind === 'teardown') return operation
    const extensions = { ...operation.extensions, persistedQuery: persistedQuery(id) }
    return makeOperation(operation.kind, { ...operation, extensions }, operation.context)
  }), forward)
}
