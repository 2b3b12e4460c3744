// Relay: the artifacts that relay-compiler made of relay/Positions.ts, with the store that merges the pages of a connection.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from 'graphql-ws'
import relay, { type FetchFunction, type GraphQLResponse, type SubscribeFunction } from 'relay-runtime'
import WebSocket from 'ws'
import pageQuery, { type PositionsPageQuery } from './relay/__generated__/PositionsPageQuery.graphql.js'
import subscription, { type PositionsPriceChangedSubscription } from './relay/__generated__/PositionsPriceChangedSubscription.graphql.js'
import query, { type PositionsQuery } from './relay/__generated__/PositionsQuery.graphql.js'
import { guide } from './guide.js'
import { address, credentials, endpoint, openTokens, reconnecting, socketEndpoint } from './server.js'

const ask: FetchFunction = async ({ text }, variables) => {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { ...credentials(), 'Content-Type': 'application/json', Accept: 'application/graphql-response+json' },
    body: JSON.stringify({ query: text, variables }),
  })
  return await response.json() as GraphQLResponse
}

test('a connection, page by page', async () => {
  const environment = new relay.Environment({ network: relay.Network.create(ask), store: new relay.Store(new relay.RecordSource()) })
  const first = await relay.fetchQuery<PositionsQuery>(environment, query, { address }).toPromise()
  const id = first!.user!.id
  const connection = () => environment.getStore().getSource().get(`client:${id}:__Positions_positions_connection`)
  const edges = () => (connection()?.edges as { __refs: string[] }).__refs.length
  assert.equal(edges(), 2)

  const { endCursor } = environment.getStore().getSource().get(`client:${id}:__Positions_positions_connection:pageInfo`)!
  await relay.fetchQuery<PositionsPageQuery>(environment, pageQuery, { id, first: 2, after: endCursor as string }).toPromise()
  assert.equal(edges(), 3)
})

test('a subscription continues after an event without data', async t => {
  const [tokenId] = await openTokens()
  const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, ...reconnecting })
  t.after(() => socket.dispose())
  let failed = false
  const listen: SubscribeFunction = ({ text }, variables) => relay.Observable.create<GraphQLResponse>(sink =>
    socket.subscribe({ query: text!, variables }, {
      ...sink,
      next: result => {
        failed ||= result.data === null
        if (result.data) sink.next(result as GraphQLResponse)
      },
    }))
  const environment = new relay.Environment({ network: relay.Network.create(ask, listen), store: new relay.Store(new relay.RecordSource()) })
  const event = await new Promise<PositionsPriceChangedSubscription['response'] | null | undefined>((resolve, reject) => {
    const { dispose } = relay.requestSubscription<PositionsPriceChangedSubscription>(environment, {
      subscription,
      variables: { tokenIds: ['unknown', tokenId] },
      onNext: event => { if (failed) resolve(event) },
      onError: reject,
    })
    t.after(dispose)
  })
  assert.ok(event?.priceChanged.token.price?.price)
})

test('the guide passes on only events with data', () => {
  assert.ok(guide.includes('next: result => { if (result.data) sink.next(result as GraphQLResponse) }'))
})
