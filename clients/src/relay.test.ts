// Relay: the artifacts that relay-compiler made of relay/Positions.ts, with the store that merges the pages of a connection.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import relay, { type FetchFunction, type GraphQLResponse } from 'relay-runtime'
import pageQuery, { type PositionsPageQuery } from './relay/__generated__/PositionsPageQuery.graphql.js'
import query, { type PositionsQuery } from './relay/__generated__/PositionsQuery.graphql.js'
import { address, credentials, endpoint } from './server.js'

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
