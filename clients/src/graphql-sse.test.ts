// graphql-sse: each operation over a separate connection.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { TypedDocumentNode } from '@graphql-typed-document-node/core'
import { print } from 'graphql'
import { createClient, type Client, type ClientOptions, type NetworkError } from 'graphql-sse'
import {
  AccountDocument, BalanceChangedDocument, OrderbookChangedDocument, PriceChangedDocument, TokenPriceDocument,
} from './__generated__/operations.js'
import { take, until } from './events.js'
import { follow } from './orderbook.js'
import { address, credentials, endpoint, malformed, openTokens, restart } from './server.js'

function connect(t: TestContext, options: Partial<ClientOptions> = {}) {
  const client = createClient({
    url: endpoint, retryAttempts: 1000, retry: () => new Promise(resolve => setTimeout(resolve, 100)), ...options,
  })
  t.after(() => client.dispose())
  return client
}

/** Starts an operation, whose results have the types of its document. */
function run<Data, Variables extends Record<string, unknown>>(
  client: Client, document: TypedDocumentNode<Data, Variables>, variables: Variables,
) {
  return client.iterate<Data>({ query: print(document), variables })
}

test('a query', async t => {
  const [tokenId] = await openTokens()
  const { data } = await take(run(connect(t), TokenPriceDocument, { tokenId }))
  assert.match(data!.token!.price!.price, /^0\.\d+$/)
})

test('a branch that fails leaves the others alone', async t => {
  const { data, errors } = await take(run(connect(t), AccountDocument, { address }))
  assert.equal(data!.serviceStatus.demo, true)
  assert.deepEqual(errors?.map(e => [e.path, e.extensions?.code]), [[['user', 'balance'], 'UNAUTHENTICATED']])
})

test('prices', async t => {
  const prices = run(connect(t), PriceChangedDocument, { tokenIds: await openTokens() })
  assert.equal((await take(prices)).data?.priceChanged.reason, 'INITIAL')
  await until(prices, ({ data }) => data?.priceChanged.reason === 'CHANGE')
})

test('an order book by its changes', async t => {
  const [tokenId] = await openTokens()
  const results = run(connect(t), OrderbookChangedDocument, { tokenId })
  await follow(results, ({ data }) => data!.orderbookChanged)
})

test('credentials', async t => {
  const client = connect(t, { headers: credentials() })
  const { data } = await take(run(client, BalanceChangedDocument, { address }))
  assert.equal(data?.balanceChanged.reason, 'INITIAL')
})

test('a wrong secret', async t => {
  const client = connect(t, { headers: credentials('wrong') })
  const { errors } = await take(run(client, AccountDocument, { address }))
  assert.deepEqual(errors?.map(e => e.extensions?.code), ['UNAUTHENTICATED'])
})

test('malformed credentials', async t => {
  const client = connect(t, { headers: malformed, retryAttempts: 0 })
  await assert.rejects(take(run(client, AccountDocument, { address })), (error: NetworkError) => {
    assert.equal(error.response?.status, 400)
    return true
  })
})

test('a restart of the server', async t => {
  const prices = run(connect(t), PriceChangedDocument, { tokenIds: await openTokens() })
  await until(prices, ({ data }) => data?.priceChanged.reason === 'CHANGE')
  await restart()
  await until(prices, ({ data }) => data?.priceChanged.reason === 'INITIAL')
})
