// The kit over other venues. Data that the venue serves work as over the demo venue, and all other data are UNSUPPORTED.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { ApolloLink, HttpLink, type ApolloClient } from '@apollo/client'
import { CombinedGraphQLErrors } from '@apollo/client/errors'
import type { DocumentNode } from 'graphql'
import { from } from 'rxjs'
import { applyDelta, isRetryable, type Book } from '@oddsgraph/kit'
import { retryLink } from '@oddsgraph/kit/apollo'
import {
  AnyTokensDocument, FindMarketsDocument, OpenOrdersDocument, OrderbookChangedDocument, PositionNodesDocument, PriceChangedDocument, TokenPriceDocument,
} from './__generated__/operations.js'
import { connectApollo } from './apollo.js'
import { iterate, take, until } from './events.js'
import { endpoint } from './server.js'

/** What the venue serves: see tests/e2e/capabilities_test.go. The demo venue serves all. */
const serves: { search: boolean; accounts: boolean; orders: boolean } =
  JSON.parse(process.env.SERVES ?? '{ "search": true, "accounts": true, "orders": true }')

const address = '0x2222222222222222222222222222222222222222'

const connect = (t: TestContext) => connectApollo(t, ApolloLink.from([retryLink(), new HttpLink({ uri: endpoint })]))

async function tokensOf(client: ApolloClient): Promise<string[]> {
  const { data } = await client.query({ query: AnyTokensDocument })
  return data!.searchMarkets!.nodes.flatMap(({ tokens }) => tokens.map(({ tokenId }) => tokenId))
}

async function wantUnsupported(client: ApolloClient, query: DocumentNode, variables: Record<string, unknown>) {
  const { error } = await client.query({ query, variables, errorPolicy: 'all' })
  assert.ok(CombinedGraphQLErrors.is(error))
  const [first] = error.errors
  assert.equal(first!.extensions?.code, 'UNSUPPORTED')
  assert.equal(isRetryable(first!), false)
  assert.ok(first!.message.length > 20, 'it gives the reason')
}

test('an event updates the object of a query', async t => {
  const client = connect(t)
  const tokenIds = await tokensOf(client)
  for (const tokenId of tokenIds) await client.query({ query: TokenPriceDocument, variables: { tokenId } })
  const prices = iterate(client.subscribe({ query: PriceChangedDocument, variables: { tokenIds } }))
  const { price } = (await until(prices, ({ data }) => data!.priceChanged.reason === 'CHANGE')).data!.priceChanged
  assert.equal(client.readQuery({ query: TokenPriceDocument, variables: { tokenId: price.tokenId } })!.token!.price!.price, price.price)
})

test('books are kept by their events', async t => {
  const client = connect(t)
  const wrong: object[] = []
  await Promise.any((await tokensOf(client)).map(async tokenId => { // wait until one of the books has changed
    const events = iterate(client.subscribe({ query: OrderbookChangedDocument, variables: { tokenId } }))
    let book: Book | undefined
    for (let n = 0; n < 2; n++) {
      const event = (await take(events)).data!.orderbookChanged
      book = applyDelta(book, event)
      const shown = { bids: book.bids.map(plain), asks: book.asks.map(plain) }
      if (!isDeepStrictEqual(shown, { bids: event.book.bids.map(plain), asks: event.book.asks.map(plain) })) wrong.push({ tokenId, shown, event })
    }
  }))
  assert.deepEqual(wrong, [])
})

const plain = ({ price, size }: { price: string; size: string }) => ({ price, size })

test('a search by text', async t => {
  const client = connect(t)
  if (!serves.search) return wantUnsupported(client, FindMarketsDocument, { text: 'the' })
  const { data } = await client.query({ query: FindMarketsDocument, variables: { text: 'the' } })
  assert.ok(data!.searchMarkets!.nodes.length > 0)
})

test('pages of positions', async t => {
  const client = connect(t)
  const variables = { address, first: 10 }
  if (!serves.accounts) return wantUnsupported(client, PositionNodesDocument, variables)
  const list = client.watchQuery({ query: PositionNodesDocument, variables })
  const results = iterate(from(list))
  const first = await until(results, ({ dataState }) => dataState === 'complete')
  const { nodes, pageInfo } = (first.data as { user: { positions: { nodes: { id: string }[]; pageInfo: { endCursor: string | null } } } }).user.positions
  assert.equal(nodes.length, 10)
  await list.fetchMore({ variables: { after: pageInfo.endCursor } })
  const all = await until(results, ({ data }) => (data?.user?.positions?.nodes?.length ?? 0) > 10)
  const ids = all.data!.user!.positions!.nodes!.map(node => node!.id!)
  assert.equal(new Set(ids).size, ids.length)
})

test('open orders', async t => {
  const client = connect(t)
  if (!serves.orders) return wantUnsupported(client, OpenOrdersDocument, { address })
  const { data } = await client.query({ query: OpenOrdersDocument, variables: { address } })
  assert.ok(data!.user!.orders)
})
