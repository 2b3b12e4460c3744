// Apollo Client 3: queries over HTTP, subscriptions over graphql-ws, both into one normalised cache.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import {
  ApolloClient, HttpLink, InMemoryCache, gql, split, type ApolloError, type Observable as Apollo3Observable,
} from 'apollo3/core/index.js'
import { createPersistedQueryLink } from 'apollo3/link/persisted-queries/index.js'
import { GraphQLWsLink } from 'apollo3/link/subscriptions/index.js'
import { getMainDefinition } from 'apollo3/utilities/index.js'
import { createClient } from 'graphql-ws'
import { Observable } from 'rxjs'
import WebSocket from 'ws'
import {
  AccountDocument, BalanceChangedDocument, OrderbookChangedDocument, PriceChangedDocument, TokenPriceDocument,
} from './__generated__/operations.js'
import { iterate as iterateRx, take, until } from './events.js'
import { follow } from './orderbook.js'
import { recorder } from './requests.js'
import { address, credentials, endpoint, malformed, openTokens, reconnecting, restart, socketEndpoint } from './server.js'

function connect(t: TestContext, headers: Record<string, string> = {}) {
  const requests = recorder()
  const socket = createClient({
    url: socketEndpoint, webSocketImpl: WebSocket, connectionParams: headers,
    ...reconnecting,
  })
  const link = split(
    ({ query }) => {
      const definition = getMainDefinition(query)
      return definition.kind === 'OperationDefinition' && definition.operation === 'subscription'
    },
    new GraphQLWsLink(socket),
    new HttpLink({ uri: endpoint, headers, fetch: requests.fetch }),
  )
  const client = new ApolloClient({ link, cache: new InMemoryCache() })
  t.after(() => { client.stop(); return socket.dispose() })
  return { client, requests }
}

/** Iterates over an observable of Apollo Client 3, which does not use RxJS. */
const iterate = <T>(source: Apollo3Observable<T>) => iterateRx(new Observable<T>(observer => {
  const subscription = source.subscribe(observer)
  return () => subscription.unsubscribe()
}))

test('a query', async t => {
  const [tokenId] = await openTokens()
  const { data } = await connect(t).client.query({ query: TokenPriceDocument, variables: { tokenId } })
  assert.match(data!.token!.price!.price, /^0\.\d+$/)
})

test('a branch that fails leaves the others alone', async t => {
  const { data, errors } = await connect(t).client.query({ query: AccountDocument, variables: { address }, errorPolicy: 'all' })
  assert.equal(data!.serviceStatus.demo, true)
  assert.deepEqual(errors?.map(e => [e.path, e.extensions?.code]), [[['user', 'balance'], 'UNAUTHENTICATED']])
})

test('a document that is not valid', async t => {
  await assert.rejects(connect(t).client.query({ query: gql`{ nothing }` }), (error: ApolloError) => {
    assert.equal(error.graphQLErrors[0]?.extensions?.code, 'GRAPHQL_VALIDATION_FAILED')
    return true
  })
})

test('prices', async t => {
  const prices = iterate(connect(t).client.subscribe({ query: PriceChangedDocument, variables: { tokenIds: await openTokens() } }))
  assert.equal((await take(prices)).data?.priceChanged.reason, 'INITIAL')
  await until(prices, ({ data }) => data?.priceChanged.reason === 'CHANGE')
})

test('an order book by its changes', async t => {
  const [tokenId] = await openTokens()
  const results = iterate(connect(t).client.subscribe({ query: OrderbookChangedDocument, variables: { tokenId } }))
  await follow(results, ({ data }) => data!.orderbookChanged)
})

test('an event updates the object of a query', async t => {
  const [tokenId] = await openTokens()
  const { client, requests } = connect(t)
  const results = iterate(client.watchQuery({ query: TokenPriceDocument, variables: { tokenId } }))
  const shown = (await until(results, ({ loading }) => !loading)).data.token!.price!.price

  const prices = iterate(client.subscribe({ query: PriceChangedDocument, variables: { tokenIds: [tokenId] } }))
  const event = await until(prices, ({ data }) => Number(data!.priceChanged.price.price) !== Number(shown))
  await until(results, ({ data }) => data?.token?.price?.price === event.data!.priceChanged.price.price)
  assert.equal(requests.made.length, 1)
})

test('credentials', async t => {
  const { client } = connect(t, credentials())
  const { data } = await client.query({ query: AccountDocument, variables: { address } })
  assert.match(data!.user!.balance!.cashBalance!, /^\d+(\.\d+)?$/)
  const balances = iterate(client.subscribe({ query: BalanceChangedDocument, variables: { address } }))
  assert.equal((await take(balances)).data?.balanceChanged.reason, 'INITIAL')
})

test('a wrong secret', async t => {
  const { client } = connect(t, credentials('wrong'))
  await assert.rejects(client.query({ query: AccountDocument, variables: { address } }), (error: ApolloError) => {
    assert.deepEqual(error.graphQLErrors.map(e => e.extensions?.code), ['UNAUTHENTICATED'])
    return true
  })
})

test('malformed credentials', async t => {
  const { client, requests } = connect(t, malformed)
  await assert.rejects(client.query({ query: AccountDocument, variables: { address } }))
  assert.deepEqual(requests.made.map(r => r.status), [400])
  await assert.rejects(take(iterate(client.subscribe({ query: BalanceChangedDocument, variables: { address } }))), /4403/)
})

for (const method of ['GET', 'POST']) {
  test(`persisted queries by ${method}`, async t => {
    const requests = recorder()
    const persisted = createPersistedQueryLink({
      sha256: text => createHash('sha256').update(text).digest('hex'), useGETForHashedQueries: method === 'GET',
    })
    const link = persisted.concat(new HttpLink({ uri: endpoint, fetch: requests.fetch }))
    // A document that no other case sends.
    const query = gql`query { persisted${method}: serviceStatus { demo } }`
    for (const _ of ['registers', 'finds']) {
      const client = new ApolloClient({ link, cache: new InMemoryCache() })
      t.after(() => client.stop())
      const { data } = await client.query<Record<string, { demo: boolean }>>({ query })
      assert.equal(data![`persisted${method}`]!.demo, true)
    }
    assert.deepEqual(requests.made.map(r => [r.method, r.document]), [[method, false], ['POST', true], [method, false]])
  })
}

test('a query that is given up', async t => {
  const controller = new AbortController()
  const { client } = connect(t)
  const context = { fetchOptions: { signal: controller.signal } }
  const answer = client.query({ query: AccountDocument, variables: { address }, context })
  controller.abort()
  await assert.rejects(answer, ({ networkError }: ApolloError) => networkError?.name === 'AbortError')
})

test('a restart of the server', async t => {
  const prices = iterate(connect(t).client.subscribe({ query: PriceChangedDocument, variables: { tokenIds: await openTokens() } }))
  await until(prices, ({ data }) => data?.priceChanged.reason === 'CHANGE')
  await restart()
  await until(prices, ({ data }) => data?.priceChanged.reason === 'INITIAL')
})
