// Configures Apollo Client: new InMemoryCache({ possibleTypes, typePolicies }) and retryLink().
import { ApolloLink, Observable, type FieldMergeFunction, type FieldPolicy, type Reference, type TypePolicies } from '@apollo/client'
import { relayStylePagination } from '@apollo/client/utilities'
import { delayOf, type GraphError } from './errors.js'
import { connections, embeddedTypes } from './schema.js'

export { possibleTypes } from './schema.js'

export const typePolicies: TypePolicies = {}
// What has no id belongs to the object that shows it. Of two queries that select different fields of it, both are kept.
for (const type of embeddedTypes) typePolicies[type] = { keyFields: false, merge: true }
// There is one of these, so that an event of streamStatusChanged updates what serviceStatus has shown.
for (const type of ['ServiceStatus', 'StreamStatus']) typePolicies[type] = { keyFields: [], merge: true }
for (const [type, lists] of Object.entries(connections)) {
  const fields = Object.fromEntries(Object.entries(lists).map(([field, keyArgs]) => [field, pages(keyArgs)]))
  typePolicies[type] = { ...typePolicies[type], fields }
}

/** One list for all pages, whether they are selected by edges or by nodes. A list that could not be read stays null. */
function pages(keyArgs: string[]): FieldPolicy {
  const byEdges = relayStylePagination(keyArgs.length > 0 && keyArgs)
  const merge = byEdges.merge as FieldMergeFunction
  return {
    ...byEdges,
    merge(existing, incoming, options) {
      if (!incoming) return existing ?? null
      const merged = merge(existing, incoming, options)
      if (!incoming.nodes) return merged
      const before: Reference[] = (options.args?.['after'] && existing?.nodes) || []
      const known = new Set(before.map(node => node.__ref))
      const added = (incoming.nodes as Reference[]).filter(node => !node.__ref || !known.has(node.__ref))
      return { ...merged, nodes: [...before, ...added] }
    },
  }
}

/**
 * Returns a link that requests a query again while it has no data and its errors are retryable, up to attempts times. It waits
 * as long as the service asks for (retryAfterMs). It delivers the last response; a response with a part of the data, or with a
 * wait of more than a minute, is delivered at once. Put it before the HttpLink. Subscriptions do not need it, because their
 * events arrive again by themselves.
 */
export function retryLink({ attempts = 3 }: { attempts?: number } = {}): ApolloLink {
  return new ApolloLink((operation, forward) =>
    new Observable(observer => {
      let timer: ReturnType<typeof setTimeout> | undefined
      let current: { unsubscribe(): void } | undefined
      const request = (attempt: number) => {
        let delay: number | undefined
        current = forward(operation).subscribe({
          next(result) {
            delay = delayOf(result.data, (result.errors ?? []) as readonly GraphError[], attempt, attempts)
            if (delay === undefined) observer.next(result)
          },
          error: error => observer.error(error),
          complete() {
            if (delay === undefined) observer.complete()
            else timer = setTimeout(() => request(attempt + 1), delay)
          },
        })
      }
      request(0)
      return () => {
        clearTimeout(timer)
        current?.unsubscribe()
      }
    }),
  )
}
