// Queries over HTTP and subscriptions over one WebSocket. Relay's store has the results of both.
import { createClient } from 'graphql-ws'
import relay, { type FetchFunction, type GraphQLResponse, type SubscribeFunction } from 'relay-runtime'
import { retryDelay, type GraphError } from '@oddsgraph/kit'

/** A bearer token of the demo venue. An app gets the token of its user from its identity provider. */
const headers = { Authorization: 'Bearer demo-50' }
const url = new URL('/graphql', location.href)

const socket = createClient({
  url: url.href.replace(/^http/, 'ws'),
  connectionParams: headers,
  retryAttempts: Infinity,
  retryWait: retries => new Promise(resolve => setTimeout(resolve, Math.min(250 * 2 ** retries, 4000))),
  shouldRetry: event => (event as CloseEvent).code !== 4403, // refused credentials
})

const attempts = 3

/** Sends a query. If the response has no data and a retryable error, ask waits and sends the query again, at most three times. */
async function ask(text: string, variables: object, attempt = 0): Promise<GraphQLResponse> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json', Accept: 'application/graphql-response+json' },
    body: JSON.stringify({ query: text, variables }),
  })
  const result = await response.json() as { data?: unknown; errors?: GraphError[] }
  const delay = result.data ? undefined : retryDelay(result.errors ?? [], attempt)
  if (delay === undefined || attempt >= attempts) return result as GraphQLResponse
  await new Promise(resolve => setTimeout(resolve, delay))
  return ask(text, variables, attempt + 1)
}

const request: FetchFunction = ({ text }, variables) => ask(text!, variables)

// The service sends an event without data if it cannot read a value. The subscription continues, but Relay would end it.
const subscribe: SubscribeFunction = ({ text }, variables) => relay.Observable.create<GraphQLResponse>(sink =>
  socket.subscribe({ query: text!, variables }, {
    ...sink,
    next: result => { if (result.data) sink.next(result as GraphQLResponse) },
  }))

export const environment = new relay.Environment({
  network: relay.Network.create(request, subscribe),
  store: new relay.Store(new relay.RecordSource()),
})
