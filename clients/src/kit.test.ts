// The package @oddsgraph/kit: caches that get pages, events and objects without an id, and an order book that is updated by its
// changes.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { ApolloClient, HttpLink, InMemoryCache, type DataState, type ObservableQuery } from '@apollo/client'
import { Client, fetchExchange, subscriptionExchange, type OperationResult, type OperationResultSource } from '@urql/core'
import { cacheExchange } from '@urql/exchange-graphcache'
import { print } from 'graphql'
import { GraphQLClient } from 'graphql-request'
import { Observable, from } from 'rxjs'
import { possibleTypes, typePolicies } from '@oddsgraph/kit/apollo'
import { applyDelta, type Book } from '@oddsgraph/kit'
import { keys, resolvers } from '@oddsgraph/kit/urql'
import {
  AnythingDocument, BookDocument, OrderbookChangedDocument, PositionEdgesDocument, PositionNodesDocument, PriceAgeDocument,
  PriceChangedDocument, PriceSourceDocument, StreamChangedDocument, StreamDocument, TokenPriceDocument,
  type OrderbookChangedSubscription, type PositionEdgesQuery, type PositionNodesQuery, type StreamQuery,
} from './__generated__/operations.js'
import { connectApollo, connectSocket } from './apollo.js'
import { iterate, take, until } from './events.js'
import { recorder } from './requests.js'
import { address, credentials, endpoint, openTokens, step } from './server.js'

function apollo(t: TestContext) {
  const requests = recorder()
  return { client: connectApollo(t, new HttpLink({ uri: endpoint, headers: credentials(), fetch: requests.fetch })), requests }
}

type Positions<Query extends PositionEdgesQuery | PositionNodesQuery> = NonNullable<NonNullable<Query['user']>['positions']>

const idsOf = ({ edges }: Positions<PositionEdgesQuery>) => edges.map(({ node }) => node.id)

/** Returns the list from the first result that is complete and fits. */
async function shown<Query extends PositionEdgesQuery | PositionNodesQuery>(
  results: AsyncIterator<ObservableQuery.Result<Query, DataState<Query>['dataState']>>, fits: (positions: Positions<Query>) => boolean = () => true,
) {
  const whole = await until(results, ({ data, dataState }) => dataState === 'complete' && fits((data as Query).user!.positions as Positions<Query>))
  return (whole.data as Query).user!.positions as Positions<Query>
}

test('Apollo: pages by edges', async t => {
  const { client } = apollo(t)
  const variables = { address, first: 2 }
  const list = client.watchQuery({ query: PositionEdgesDocument, variables })
  const results = iterate(from(list))
  const first = await shown(results)
  assert.equal(first.pageInfo.hasNextPage, true)
  await list.fetchMore({ variables: { after: first.pageInfo.endCursor } })
  const all = await shown(results, ({ edges }) => edges.length > 2)
  assert.deepEqual(idsOf(all).slice(0, 2), idsOf(first))
  assert.equal(new Set(idsOf(all)).size, 3)
  assert.equal(all.pageInfo.hasNextPage, false)

  // Other arguments make another list. The first list must stay complete.
  const large = await client.query({ query: PositionEdgesDocument, variables: { ...variables, minSize: '100000000' } })
  assert.deepEqual(idsOf(large.data!.user!.positions!), [])
  assert.deepEqual(client.readQuery({ query: PositionEdgesDocument, variables })!.user!.positions, all)

  // After a refetch, the list begins with its first page again.
  await list.refetch()
  assert.deepEqual(idsOf(await shown(results, ({ edges }) => edges.length === 2)), idsOf(first))
})

test('Apollo: pages by nodes', async t => {
  const { client } = apollo(t)
  const list = client.watchQuery({ query: PositionNodesDocument, variables: { address, first: 1 } })
  const results = iterate(from(list))
  let page = await shown(results)
  for (let pages = 2; pages <= 3; pages++) {
    await list.fetchMore({ variables: { after: page.pageInfo.endCursor } })
    page = await shown(results, ({ nodes }) => nodes.length === pages)
  }
  assert.equal(new Set(page.nodes.map(node => node.id)).size, 3)
  assert.equal(page.totalCount, 3)
  assert.equal(page.pageInfo.hasNextPage, false)
})

test('Apollo: a list that could not be read is null', async t => {
  const link = new HttpLink({ uri: endpoint })
  const client = new ApolloClient({ link, cache: new InMemoryCache({ possibleTypes, typePolicies }) })
  t.after(() => client.stop())
  const variables = { address, first: 1 }
  const { error } = await client.query({ query: PositionEdgesDocument, variables, errorPolicy: 'all' })
  assert(error)
  const { data } = await client.query({ query: PositionEdgesDocument, variables, errorPolicy: 'all', fetchPolicy: 'cache-only' })
  assert.equal(data?.user?.positions, null)
})

test('Apollo: an object without an id keeps what two queries have selected', async t => {
  const [tokenId] = await openTokens()
  const { client, requests } = apollo(t)
  for (const query of [PriceSourceDocument, PriceAgeDocument]) await client.query({ query, variables: { tokenId } })
  assert(client.readQuery({ query: PriceSourceDocument, variables: { tokenId } })!.token!.price!.freshness.source)
  assert(client.readQuery({ query: PriceAgeDocument, variables: { tokenId } })!.token!.price!.freshness.receivedAt)
  assert.equal(requests.made.length, 2)
})

test('Apollo: an object by its interface', async t => {
  const { client } = apollo(t)
  const { data } = await client.query({ query: PositionEdgesDocument, variables: { address, first: 1 } })
  const variables = { id: data!.user!.id }
  await client.query({ query: AnythingDocument, variables })
  const { node } = client.readQuery({ query: AnythingDocument, variables })!
  assert.deepEqual(node, { __typename: 'User', id: variables.id, address })
})

test('Apollo: the status of the stream', async t => {
  const { client } = apollo(t)
  const shown = () => client.readQuery({ query: StreamDocument })!.serviceStatus
  const { data } = await client.query({ query: StreamDocument })
  const { stream, ...service } = data!.serviceStatus
  const venue = (name: string, state: string) => ({ __typename: 'ServiceVenue', name, stream: { __typename: 'StreamStatus', id: name, state } })
  const venues = [venue('a', 'LIVE'), venue('b', 'DISCONNECTED')]
  client.writeQuery({ query: StreamDocument, data: { serviceStatus: { ...service, venues, stream: { ...stream, state: 'CONNECTING' } } } as StreamQuery })
  assert.equal(shown().stream.state, 'CONNECTING')
  await take(iterate(client.subscribe({ query: StreamChangedDocument })))
  assert.equal(shown().stream.state, 'LIVE')
  assert.deepEqual(shown().venues, venues)
})

function urql(t: TestContext, ask: typeof fetch = fetch) {
  const complaints = (['warn', 'error'] as const).map(level => t.mock.method(console, level).mock)
  const requests = recorder(ask)
  const socket = connectSocket(t)
  const client = new Client({
    url: endpoint,
    preferGetMethod: false,
    fetch: requests.fetch,
    fetchOptions: { headers: credentials() },
    exchanges: [cacheExchange({ keys, resolvers }), fetchExchange, subscriptionExchange({
      forwardSubscription: ({ query, variables, extensions }) => ({
        subscribe: sink => ({ unsubscribe: socket.subscribe({ query: query ?? '', variables, extensions }, sink) }),
      }),
    })],
  })
  t.after(() => assert.deepEqual(complaints.flatMap(({ calls }) => calls.map(call => call.arguments)), []))
  return { client, requests }
}

const resultsOf = <T extends OperationResult>(source: OperationResultSource<T>) => iterate(new Observable<T>(observer => {
  const subscription = source.subscribe(result => observer.next(result))
  return () => subscription.unsubscribe()
}))

test('urql: pages by edges and by nodes', async t => {
  const { client } = urql(t)
  let after: string | null | undefined
  for (const pages of [1, 2, 3]) {
    const byEdges = (await client.query(PositionEdgesDocument, { address, first: 1, after })).data!.user!.positions!
    const byNodes = (await client.query(PositionNodesDocument, { address, first: 1, after })).data!.user!.positions!
    after = byEdges.pageInfo.endCursor
    assert.equal(new Set(byEdges.edges.map(edge => edge.node.id)).size, pages)
    assert.deepEqual(byNodes.nodes.map(node => node.id), byEdges.edges.map(edge => edge.node.id))
    assert.equal(byNodes.totalCount, 3)
  }
})

test('urql: an event updates the object of a query', async t => {
  const [tokenId] = await openTokens()
  const { client, requests } = urql(t)
  const results = resultsOf(client.query(TokenPriceDocument, { tokenId }))
  const shown = (await take(results)).data!.token!.price!.price
  const prices = resultsOf(client.subscription(PriceChangedDocument, { tokenIds: [tokenId] }))
  const event = await until(prices, ({ data }) => Number(data!.priceChanged.price.price) !== Number(shown))
  await until(results, ({ data }) => data?.token?.price?.price === event.data!.priceChanged.price.price)
  assert.equal(requests.made.length, 1)
})

test('urql: an object without an id keeps what two queries have selected', async t => {
  const { client } = urql(t)
  const [tokenId] = await openTokens()
  for (const query of [PriceSourceDocument, PriceAgeDocument]) await client.query(query, { tokenId })
  assert(client.readQuery(PriceSourceDocument, { tokenId })!.data!.token!.price!.freshness.source)
  assert(client.readQuery(PriceAgeDocument, { tokenId })!.data!.token!.price!.freshness.receivedAt)
})

test('urql: the status of the stream', async t => {
  // The test falsifies the state in the query's response, so the right state can come from the event only.
  const { client } = urql(t, async (...request) => {
    const response = await fetch(...request)
    return new Response((await response.text()).replaceAll('LIVE', 'CONNECTING'), response)
  })
  const shown = () => client.readQuery(StreamDocument, {})!.data!.serviceStatus.stream.state
  await client.query(StreamDocument, {})
  assert.equal(shown(), 'CONNECTING')
  await take(resultsOf(client.subscription(StreamChangedDocument, {})))
  assert.equal(shown(), 'LIVE')
})

type Event = OrderbookChangedSubscription['orderbookChanged']

test('a book and 300 changes', async t => {
  const [tokenId] = await openTokens()
  const server = new GraphQLClient(endpoint)
  const books = new Map<string, Book>()
  let book: Book | undefined
  let deltas = 0
  // Until the book has changed often enough, move the market and query the book.
  const queried: Book[] = []
  const moving = (async () => {
    while (deltas < 300) {
      await step(3)
      const { orderbook } = (await server.request(BookDocument, { tokenId })).token!
      if (orderbook?.sequence) queried.push(orderbook)
    }
  })()
  const events = connectSocket(t).iterate<OrderbookChangedSubscription>({ query: print(OrderbookChangedDocument), variables: { tokenId } })
  while (deltas < 300) {
    const event: Event = (await take(events)).data!.orderbookChanged
    const before = structuredClone(book)
    const after = applyDelta(book, event)
    assert.deepEqual(book, before, 'applyDelta leaves the previous book unchanged')
    assert.deepEqual({ bids: after.bids, asks: after.asks }, event.book, 'the changes give the book of the server')
    if (event.kind === 'DELTA') deltas++
    book = after
    books.set(event.sequence!, after)
  }
  await moving
  const same = queried.filter(({ sequence }) => books.has(sequence!))
  assert(same.length >= 10, `${same.length} of ${queried.length} queried books have been sent as events too`)
  for (const { bids, asks, sequence } of same) assert.deepEqual(books.get(sequence!), { bids, asks, sequence })
})

test('a delta that does not continue the book', () => {
  const level = { price: '0.5', size: '1' }
  const book = applyDelta(undefined, { kind: 'SNAPSHOT', sequence: '1', bids: [level], asks: [] })
  const delta = { kind: 'DELTA', sequence: '3', previousSequence: '2', bids: [], asks: [] } as const
  assert.throws(() => applyDelta(book, delta), /missing/)
  assert.throws(() => applyDelta(undefined, { ...delta, previousSequence: null }), /missing/)
  const gone = applyDelta(book, { ...delta, previousSequence: '1', bids: [{ price: '0.50', size: '0.0' }, { price: '0.4', size: '2' }, { price: '0.45', size: '3' }] })
  assert.deepEqual(gone.bids, [{ price: '0.45', size: '3' }, { price: '0.4', size: '2' }])
})
