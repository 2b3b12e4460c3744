// Configures Apollo Client: new InMemoryCache({ possibleTypes, typePolicies }) and retryLink().
import { ApolloLink, Observable, type FieldMergeFunction, type FieldPolicy, type Reference, type TypePolicies } from '@apollo/client'
import { relayStylePagination } from '@apollo/client/utilities'
import { delayOf, delayOfFailure, type GraphError } from './errors.js'
import { documentIds, persistedQuery, type Manifest } from './persisted.js'
import { connections, embeddedTypes } from './schema.js'

export { possibleTypes } from './schema.js'
export { applyOrders, applyPortfolio, applyTrades } from './apolloLists.js'

export const typePolicies: TypePolicies = {}
// An object without an id is stored inside its parent object. Fields that different queries select are merged.
for (const type of embeddedTypes) typePolicies[type] = { keyFields: false, merge: true }
// There is only one object of this type.
typePolicies['ServiceStatus'] = { keyFields: [], merge: true }
// With its id, an event of streamStatusChanged updates the result of serviceStatus. Without it, the status is stored inside its venue.
typePolicies['StreamStatus'] = { merge: true }
for (const [type, lists] of Object.entries(connections)) {
  const fields = Object.fromEntries(Object.entries(lists).map(([field, keyArgs]) => [field, pages(keyArgs)]))
  typePolicies[type] = { ...typePolicies[type], fields }
}

/** Stores all pages as one list, whether a query selects edges or nodes. A page that is null after an error changes nothing. */
function pages(keyArgs: string[]): FieldPolicy {
  const byEdges = relayStylePagination(keyArgs.length > 0 && keyArgs)
  const merge = byEdges.merge as FieldMergeFunction
  return {
    ...byEdges,
    merge(existing, incoming, options) {
      if (!incoming) return existing ?? null
      const merged = merge(existing, incoming, options)
      // Without unique, a row that moved to another page between two requests would be in the list twice.
      if (merged.edges) merged.edges = unique(merged.edges as Edge[], ({ node }) => node?.__ref)
      if (!incoming.nodes) return merged
      const before: Reference[] = (options.args?.['after'] && existing?.nodes) || []
      return { ...merged, nodes: unique([...before, ...incoming.nodes as Reference[]], node => node.__ref) }
    },
  }
}

interface Edge { node?: Reference }

/** Returns the first item for each key, and all items without a key. */
function unique<T>(items: readonly T[], keyOf: (item: T) => string | undefined): T[] {
  const seen = new Set<string>()
  return items.filter(item => {
    const key = keyOf(item)
    if (key === undefined) return true
    return seen.size < seen.add(key).size
  })
}

/**
 * Returns a link that sends a query again if the response has no data and a retryable error, at most attempts times. Before each
 * retry the link waits as long as the service asks for (retryAfterMs). The link delivers only the last response. It does not retry
 * if the response has a part of the data, or if the wait would be more than a minute. It also retries requests without a response,
 * and after the statuses 429, 502, 503 and 504. Put the link before the HttpLink. Subscriptions do not need the link, because the
 * server sends their present state again.
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
          error(error: Failed) {
            const delay = delayOfError(error, attempt, attempts)
            if (delay === undefined) observer.error(error)
            else timer = setTimeout(() => request(attempt + 1), delay)
          },
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

/** The errors that HttpLink of Apollo Client 3 and 4 throws. */
interface Failed {
  readonly name?: string
  readonly statusCode?: number
  readonly response?: Response
  readonly bodyText?: string
  readonly result?: { readonly errors?: readonly GraphError[] } | string
}

function delayOfError(error: Failed, attempt: number, attempts: number): number | undefined {
  if (error.statusCode === undefined && !(error instanceof TypeError)) return undefined // such as AbortError; fetch throws TypeErrors
  const errors = errorsOf(error)
  if (errors.length > 0) return delayOf(undefined, errors, attempt, attempts)
  return delayOfFailure({ status: error.statusCode, retryAfter: error.response?.headers.get('Retry-After') }, attempt, attempts)
}

/** The errors in the body of a response with an error status. */
function errorsOf({ result, bodyText }: Failed): readonly GraphError[] {
  if (typeof result === 'object') return result.errors ?? []
  try {
    const body: unknown = JSON.parse(bodyText ?? '')
    return (body as { errors?: GraphError[] } | null)?.errors ?? []
  } catch {
    return [] // a page of a proxy
  }
}

/**
 * Returns a link that sends the id of a trusted document in place of its text. The link sends documents that are not in the
 * manifest as text. Put the link before the HttpLink. For subscriptions, give graphql-ws the option
 * jsonMessageReplacer: withoutPersistedText.
 */
export function persistedLink(manifest: Manifest): ApolloLink {
  const ids = documentIds(manifest)
  return new ApolloLink((operation, forward) => {
    const id = ids.get(operation.operationName ?? '')
    if (id !== undefined) {
      operation.extensions = { ...operation.extensions, persistedQuery: persistedQuery(id) }
      operation.setContext(({ http }: { http?: object }) => ({ http: { ...http, includeExtensions: true, includeQuery: false } }))
    }
    return forward(operation)
  })
}
