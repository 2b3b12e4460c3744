// How GraphiQL sends requests: queries by POST, subscriptions over graphql-transport-ws. A query has the headers that the user
// typed. For a subscription, connection_init has these headers.
import { createGraphiQLFetcher, type Fetcher, type FetcherOpts, type FetcherParams } from '@graphiql/toolkit'
import { Kind, OperationTypeNode, parse } from 'graphql'
import { subscribe } from './subscribe'
import isDemoQuery from './is-demo.graphql'

const endpoint = new URL('graphql', location.href).href
const post = createGraphiQLFetcher({ url: endpoint, enableIncrementalDelivery: false })

/** The headers that request the cost and the explanation of an operation in the extensions of its response. */
const figures = { 'X-Oddsgraph-Cost': '1', 'X-Oddsgraph-Explain': '1' }

/** Returns a fetcher that passes the extensions of each response to show. If asking() is true, it requests cost and explanation. */
export function fetcherWith(asking: () => boolean, show: (extensions: unknown) => void): Fetcher {
  return async (params, options) => {
    if (params.operationName === 'IntrospectionQuery') return post(params, options)
    show(undefined)
    const headers = asking() ? { ...options?.headers, ...figures } : options?.headers
    const [request, settings] = current(params, { headers })
    const isSubscription = settings.documentAST?.definitions.some(definition =>
      definition.kind === Kind.OPERATION_DEFINITION && definition.operation === OperationTypeNode.SUBSCRIPTION &&
      (!request.operationName || definition.name?.value === request.operationName))
    if (isSubscription) return subscribe(endpoint.replace(/^http/, 'ws'), request, options?.headers) as ReturnType<Fetcher>
    let answer: Awaited<ReturnType<typeof post>>
    try {
      answer = await post(request, settings)
    } catch (problem) {
      return { errors: [{ message: explained(problem) }] } as unknown as typeof answer
    }
    if (!(Symbol.asyncIterator in answer)) show((answer as { extensions?: unknown }).extensions)
    return answer
  }
}

/** Returns a text that says what to do when there is no response, or when the response is not JSON. */
function explained(problem: unknown): string {
  if (problem instanceof SyntaxError) return 'The answer is not JSON, so it did not come from this service: check the proxy in front of it.'
  return 'The server cannot be reached: check that it runs, then run the query again.'
}

/**
 * Returns the request with the name of an operation in its document. Just after the user changes tabs, GraphiQL still passes the
 * operation name of the previous tab.
 */
function current(params: FetcherParams, options: FetcherOpts): [FetcherParams, FetcherOpts] {
  try {
    const documentAST = parse(params.query)
    const names = documentAST.definitions.flatMap(definition => (definition.kind === Kind.OPERATION_DEFINITION ? [definition.name?.value] : []))
    const operationName = names.includes(params.operationName ?? undefined) ? params.operationName : names[0]
    return [{ ...params, operationName }, { ...options, documentAST }]
  } catch {
    return [params, options] // the server explains the syntax error
  }
}

/** Whether the service uses the demo venue, whose credentials are public. */
export async function isDemo(): Promise<boolean> {
  try {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query: isDemoQuery }),
    })
    return (await response.json()).data.serviceStatus.demo === true
  } catch {
    return false
  }
}
