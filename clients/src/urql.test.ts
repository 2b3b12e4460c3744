// urql: queries over HTTP, subscriptions over graphql-ws, or over SSE without any further package.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  Client, cacheExchange, fetchExchange, gql, subscriptionExchange, type ClientOptions, type OperationResult, type OperationResultSource,
} from '@urql/core'
import { createClient } from 'graphql-ws'
import { Observable } from 'rxjs'
import WebSocket, { type CloseEvent } from 'ws'
import {
  AccountDocument, BalanceChangedDocument, OrderbookChangedDocument, PriceChangedDocument, TokenPriceDocument,
} from './__generated__/operations.js'
import { iterate, take, until } from './events.js'
import { follow } from './orderbook.js'
import { recorder } from './requests.js'
import { address, credentials, endpoint, malformed, openTokens, reconnecting, restart, socketEndpoint } from './server.js'

function connect(t: TestContext, headers: Record<string, string> = {}, options: Partial<ClientOptions> = {}) {
  const socket = createClient({
    url: socketEndpoint, webSocketImpl: WebSocket, connectionParams: headers,
    ...reconnecting,
  })
  t.after(() => socket.dispose())
  return new Client({
    url: endpoint,
    preferGetMethod: false,
    fetchOptions: { headers },
    exchanges: [cacheExchange, fetchExchange, subscriptionExchange({
      forwardSubscription: ({ query, variables, extensions }) => ({
        subscribe: sink => ({ unsubscribe: socket.subscribe({ query: query ?? '', variables, extensions }, sink) }),
      }),
    })],
    ...options,
  })
}

/** Subscriptions of urql never fail. Their errors are part of their results. */
const events = <T extends OperationResult>(source: OperationResultSource<T>) => iterate(new Observable<T>(observer => {
  const subscription = source.subscribe(result => observer.next(result))
  return () => subscription.unsubscribe()
}))

test('a query', async t => {
  const [tokenId] = await openTokens()
  const { data } = await connect(t).query(TokenPriceDocument, { tokenId })
  assert.match(data!.token!.price!.price, /^0\.\d+$/)
})

test('a query by GET', async t => {
  const requests = recorder()
  const { data } = await connect(t, {}, { preferGetMethod: 'force', fetch: requests.fetch }).query(AccountDocument, { address })
  assert.equal(data!.serviceStatus.demo, true)
  assert.deepEqual(requests.made.map(r => r.method), ['GET'])
})

test('a branch that fails leaves the others alone', async t => {
  const { data, error } = await connect(t).query(AccountDocument, { address })
  assert.equal(data!.serviceStatus.demo, true)
  assert.deepEqual(error?.graphQLErrors.map(e => [e.path, e.extensions.code]), [[['user', 'balance'], 'UNAUTHENTICATED']])
})

test('a document that is not valid', async t => {
  const { error } = await connect(t).query(gql`{ nothing }`, {})
  assert.equal(error?.graphQLErrors[0]?.extensions.code, 'GRAPHQL_VALIDATION_FAILED')
})

test('prices', async t => {
  const prices = events(connect(t).subscription(PriceChangedDocument, { tokenIds: await openTokens() }))
  assert.equal((await take(prices)).data?.priceChanged.reason, 'INITIAL')
  await until(prices, ({ data }) => data?.priceChanged.reason === 'CHANGE')
})

test('prices over SSE', async t => {
  const client = connect(t, {}, { fetchSubscriptions: true })
  const prices = events(client.subscription(PriceChangedDocument, { tokenIds: await openTokens() }))
  assert.equal((await take(prices)).data?.priceChanged.reason, 'INITIAL')
  await until(prices, ({ data }) => data?.priceChanged.reason === 'CHANGE')
  // urql does not reconnect its SSE streams. An AbortError may escape from a stream that is unsubscribed.
  await restart()
  await until(prices, ({ error, hasNext }) => Boolean(error) || !hasNext)
})

test('an order book by its changes', async t => {
  const [tokenId] = await openTokens()
  const results = events(connect(t).subscription(OrderbookChangedDocument, { tokenId }))
  await follow(results, ({ data }) => data!.orderbookChanged)
})

test('credentials', async t => {
  const client = connect(t, credentials())
  const { data } = await client.query(AccountDocument, { address })
  assert.match(data!.user!.balance!.cashBalance!, /^\d+(\.\d+)?$/)
  const balances = events(client.subscription(BalanceChangedDocument, { address }))
  assert.equal((await take(balances)).data?.balanceChanged.reason, 'INITIAL')
})

test('a wrong secret', async t => {
  const { error } = await connect(t, credentials('wrong')).query(AccountDocument, { address })
  assert.deepEqual(error?.graphQLErrors.map(e => e.extensions.code), ['UNAUTHENTICATED'])
})

test('malformed credentials', async t => {
  const client = connect(t, malformed)
  const query = await client.query(AccountDocument, { address })
  assert.equal(query.error?.response.status, 400)
  const subscription = await take(events(client.subscription(BalanceChangedDocument, { address })))
  assert.equal((subscription.error!.networkError as unknown as CloseEvent).code, 4403)
})

test('a query that is given up', async t => {
  const aborted = await new Promise<boolean>(resolve => {
    const client = connect(t, {}, {
      fetch: (url, init) => {
        const response = fetch(url, init)
        answer.unsubscribe()
        resolve(init!.signal!.aborted)
        return response
      },
    })
    const answer = client.query(AccountDocument, { address }).subscribe(() => assert.fail('an answer has come'))
  })
  assert.equal(aborted, true)
})

test('a restart of the server', async t => {
  const prices = events(connect(t).subscription(PriceChangedDocument, { tokenIds: await openTokens() }))
  await until(prices, ({ data }) => data?.priceChanged.reason === 'CHANGE')
  await restart()
  await until(prices, ({ data }) => data?.priceChanged.reason === 'INITIAL')
})
