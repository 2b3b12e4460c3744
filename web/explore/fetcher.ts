// How GraphiQL sends requests: queries by POST, subscriptions over graphql-transport-ws. Both send the headers that were typed;
// subscriptions send them in connection_init.
import { createGraphiQLFetcher, type Fetcher, type FetcherOpts, type FetcherParams } from '@graphiql/toolkit'
import { Kind, OperationTypeNode, parse } from 'graphql'
import { subscribe } from './subscribe'
import isDemoQuery from './is-demo.graphql'

const endpoint = new URL('/graphql', location.href).href
const post = createGraphiQLFetcher({ url: endpoint, enableIncrementalDelivery: false })

/** The headers that ask for figures in the extensions of a response. */
const figures = { 'X-Oddsgraph-Cost': '1', 'X-Oddsgraph-Explain': '1' }

/** Returns a fetcher that shows the extensions of each response. While asking() is true it also asks for figures. */
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

/** Says what to do if there is no answer, or if the answer is not JSON. */
function explained(problem: unknown): string {
  if (problem instanceof SyntaxError) return 'The answer is not JSON, so it did not come from this service: check the proxy in front of it.'
  return 'The server cannot be reached: check that it runs, then run the query again.'
}

/**
 * Returns the request with an operation name that its text has. Just after a change of tabs, GraphiQL still gives the previous
 * name.
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
