// Queries over HTTP and subscriptions over one WebSocket. Relay's store has the results of both.
import { createClient } from 'graphql-ws'
import relay, { type FetchFunction, type GraphQLResponse, type SubscribeFunction } from 'relay-runtime'
import { retryDelay, socketOptions, watchSocket, type GraphError } from '@oddsgraph/kit'

declare const TOKEN: string // see vite.config.ts

/** An app gets the token of its user from its identity provider. Without a token, it reads what everybody may read. */
const headers: Record<string, string> = TOKEN ? { Authorization: `Bearer ${TOKEN}` } : {}
const url = new URL('/graphql', location.href)

const socket = createClient({ url: url.href.replace(/^http/, 'ws'), connectionParams: headers, ...socketOptions })

/** Whether the page is connected to the service. */
export const connection = watchSocket(socket)

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
