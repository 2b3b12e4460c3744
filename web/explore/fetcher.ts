// How GraphiQL asks: queries by POST, subscriptions over graphql-transport-ws. The headers that were typed go along with
// both, in connection_init with the latter.
import { createGraphiQLFetcher, type Fetcher, type FetcherOpts, type FetcherParams } from '@graphiql/toolkit'
import { Kind, OperationTypeNode, parse } from 'graphql'
import { subscribe } from './subscribe'
import isDemoQuery from './is-demo.graphql'

const endpoint = new URL('/graphql', location.href).href
const post = createGraphiQLFetcher({ url: endpoint, enableIncrementalDelivery: false })

/** The headers that ask for figures in the extensions of a response. */
const figures = { 'X-Oddsgraph-Cost': '1', 'X-Oddsgraph-Explain': '1' }

/** A fetcher that asks for figures, too, while asking() is true, and shows the extensions of each response. */
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

/** What to do if there is no answer, or none of GraphQL. */
function explained(problem: unknown): string {
  if (problem instanceof SyntaxError) return 'The answer is not JSON, so it did not come from this service: check the proxy in front of it.'
  return 'The server cannot be reached: check that it runs, then run the query again.'
}

/** A request of the operation in its own text: for a moment after another tab was opened GraphiQL still names the one before. */
function current(params: FetcherParams, options: FetcherOpts): [FetcherParams, FetcherOpts] {
  try {
    const documentAST = parse(params.query)
    const names = documentAST.definitions.flatMap(definition => (definition.kind === Kind.OPERATION_DEFINITION ? [definition.name?.value] : []))
    const operationName = names.includes(params.operationName ?? undefined) ? params.operationName : names[0]
    return [{ ...params, operationName }, { ...options, documentAST }]
  } catch {
    return [params, options] // the server says what is wrong
  }
}

/** Whether the demo venue answers, whose credentials anybody may know. */
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
