// applyPortfolio, applyOrders and applyTrades of @oddsgraph/kit/apollo in the normalised cache, with the events of a real server.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { OperationTypeNode } from 'graphql'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { compareDecimals } from '@oddsgraph/kit'
import { applyOrders, applyPortfolio, applyTrades, possibleTypes, typePolicies } from '@oddsgraph/kit/apollo'
import { PortfolioChangedDocument, SortedPositionsDocument, type PositionSort } from './__generated__/operations.js'
import { iterate, until } from './events.js'
import { recorder } from './requests.js'
import { address, control, credentials, endpoint, reconnecting, socketEndpoint } from './server.js'

function connect(t: TestContext) {
  const complaints = (['warn', 'error'] as const).map(level => t.mock.method(console, level).mock)
  const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, connectionParams: credentials(), ...reconnecting })
  const requests = recorder()
  const link = ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(socket),
    new HttpLink({ uri: endpoint, headers: credentials(), fetch: requests.fetch }),
  )
  const cache = new InMemoryCache({ possibleTypes, typePolicies })
  const client = new ApolloClient({ link, cache })
  t.after(() => {
    client.stop()
    assert.deepEqual(complaints.flatMap(({ calls }) => calls.map(call => call.arguments)), [])
    return socket.dispose()
  })
  return { cache, client, requests }
}

test('positions are closed and opened', async t => {
  const { cache, client, requests } = connect(t)
  const lists = {
    whole: { address, first: 50, sort: 'VALUE' as PositionSort },
    partial: { address, first: 1, sort: 'PNL' as PositionSort },
    unsorted: { address, first: 50 },
  }
  for (const variables of Object.values(lists)) await client.query({ query: SortedPositionsDocument, variables })
  const shown = (name: keyof typeof lists) => client.readQuery({ query: SortedPositionsDocument, variables: lists[name] })!.user!.positions!
  const userId = client.readQuery({ query: SortedPositionsDocument, variables: lists.whole })!.user!.id
  const before = shown('whole')
  const unsorted = shown('unsorted').nodes.map(({ id }) => id)
  assert.equal(before.totalCount, 3)
  assert.equal(shown('partial').pageInfo.hasNextPage, true)

  const results = iterate(client.subscribe({ query: PortfolioChangedDocument, variables: { address } }))
  const apply = (fits: (ids: { changed: string[]; closed: readonly string[] }) => boolean) => until(results, ({ data }) => {
    const event = data!.portfolioChanged
    applyPortfolio(cache, userId, event)
    const values = shown('whole').nodes.map(({ valuation }) => valuation!.value)
    assert.deepEqual(values, [...values].sort((a, b) => compareDecimals(b, a)), 'the list stays sorted')
    return fits({ changed: event.changed.map(({ id }) => id), closed: event.closedPositionIds })
  })

  // The best row of the partly loaded list.
  const row = shown('partial').nodes[0]!
  // The wallet also trades by itself, so row.size may be out of date.
  const close = () => control('trade', { address, tokenId: row.token!.tokenId, side: 'SELL' })
  const reopen = () => control('trade', { address, tokenId: row.token!.tokenId, side: 'BUY', size: Number(row.size) })
  await apply(({ changed }) => changed.length === 3)
  await close()
  await apply(({ closed }) => closed.includes(row.id))
  for (const name of ['whole', 'unsorted'] as const) {
    assert.equal(shown(name).totalCount, 2)
    assert.deepEqual(shown(name).nodes.map(({ id }) => id).sort(), before.nodes.map(({ id }) => id).filter(id => id !== row.id).sort())
  }
  assert.equal(shown('partial').totalCount, 2)
  assert.equal(shown('partial').nodes.length, 1)
  assert.notEqual(shown('partial').nodes[0]!.id, row.id)

  await reopen()
  await apply(({ changed }) => changed.includes(row.id))
  assert.deepEqual(shown('whole').nodes.map(({ id }) => id).sort(), before.nodes.map(({ id }) => id).sort())
  assert.deepEqual(shown('unsorted').nodes.map(({ id }) => id), [...unsorted.filter(id => id !== row.id), row.id], 'a new row comes last')
  assert.deepEqual([shown('whole').totalCount, shown('partial').totalCount, shown('partial').nodes.length], [3, 3, 1])
  assert.equal(requests.made.length, 3, 'no list was queried again')
})

test('a list with a filter is queried again when a position is new', async t => {
  const { cache, client } = connect(t)
  const variables = { address, first: 50, minSize: '0.01' }
  const { data } = await client.query({ query: SortedPositionsDocument, variables })
  const { id: userId, positions } = data!.user!
  const ids = positions!.nodes.map(({ id }) => id)
  const shown = () => client.readQuery({ query: SortedPositionsDocument, variables })?.user?.positions?.nodes.map(({ id }) => id)
  const event = (reason: 'INITIAL' | 'CHANGE', changed: string[], closedPositionIds: string[] = []) => ({ reason, changed: changed.map(id => ({ id })), closedPositionIds })
  applyPortfolio(cache, userId, event('CHANGE', ['unknown'])) // an event before the first INITIAL changes nothing
  assert.deepEqual(shown(), ids)
  applyPortfolio(cache, userId, event('INITIAL', ids))
  applyPortfolio(cache, userId, event('CHANGE', [], [ids[0]!]))
  assert.deepEqual(shown(), ids.slice(1))
  applyPortfolio(cache, userId, event('CHANGE', ['new']))
  assert.equal(shown(), undefined)
})

test('orders and trades', async t => {
  const { cache, client } = connect(t)
  const query = gql`query ($address: Address!) { user(address: $address) {
    id orders { edges { cursor node { id } } totalCount pageInfo { hasNextPage endCursor } } trades { nodes { id } pageInfo { hasNextPage endCursor } }
  } }`
  type Data = { user: { id: string; orders: { edges: { node: { id: string } }[]; totalCount: number }; trades: { nodes: { id: string }[] } } }
  const { data } = await client.query<Data>({ query, variables: { address } })
  const { id: userId, orders, trades } = data!.user
  const shown = () => client.readQuery<Data>({ query, variables: { address }, returnPartialData: true })?.user
  const open = orders.edges.map(({ node }) => node.id)
  applyOrders(cache, userId, { reason: 'INITIAL', changed: [...open, 'new'].map(id => ({ id })), closedOrderIds: [] })
  cache.writeFragment({ id: 'Order:new', fragment: gql`fragment O on Order { id }`, data: { __typename: 'Order', id: 'new' } })
  if (open.length > 0) {
    assert.deepEqual(shown()!.orders.edges.map(({ node }) => node.id), [...open, 'new'])
    applyOrders(cache, userId, { reason: 'CHANGE', changed: [], closedOrderIds: [open[0]!] })
    assert.deepEqual(shown()!.orders.edges.map(({ node }) => node.id), [...open.slice(1), 'new'])
    assert.equal(shown()!.orders.totalCount, open.length)
  }
  const done = trades.nodes.map(({ id }) => id)
  for (const id of ['t1', 't2']) cache.writeFragment({ id: `Trade:${id}`, fragment: gql`fragment T on Trade { id }`, data: { __typename: 'Trade', id } })
  applyTrades(cache, userId, { reason: 'CHANGE', trades: [{ id: done[0]! }, { id: 't1' }, { id: 't2' }], gap: false })
  assert.deepEqual(shown()!.trades.nodes.map(({ id }) => id), ['t2', 't1', ...done])
  applyTrades(cache, userId, { reason: 'CHANGE', trades: [], gap: true })
  assert.equal(shown()!.trades, undefined)
})
