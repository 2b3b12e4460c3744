// Trusted documents, retries and credentials of @oddsgraph/kit: over real connections, with the statuses of real responses.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, type OperationVariables } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { ApolloClient as ApolloClient3, ApolloLink as ApolloLink3, HttpLink as HttpLink3, InMemoryCache as InMemoryCache3 } from 'apollo3/core/index.js'
import { Client, fetchExchange, subscriptionExchange } from '@urql/core'
import { print } from 'graphql'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { credentialsHeader, documentIds, withoutPersistedText } from '@oddsgraph/kit'
import { persistedLink, retryLink } from '@oddsgraph/kit/apollo'
import { persistedExchange, retryExchange } from '@oddsgraph/kit/urql'
import { AccountDocument, PriceChangedDocument, TokenPriceDocument } from './__generated__/operations.js'
import { iterate, take } from './events.js'
import { guide } from './guide.js'
import { recorder } from './requests.js'
import { address, endpoint, openTokens, reconnecting, socketEndpoint } from './server.js'

/** Registers documents with the service, and returns them as a manifest that a build would have written. */
async function register(...documents: (typeof TokenPriceDocument | typeof PriceChangedDocument)[]) {
  const tokenIds = await openTokens()
  const texts = documents.map(print)
  const manifest = Object.fromEntries(texts.map(text => [createHash('sha256').update(text).digest('hex'), text]))
  for (const [sha256Hash, query] of Object.entries(manifest)) {
    const body = JSON.stringify({ query, variables: { tokenId: tokenIds[0], tokenIds }, extensions: { persistedQuery: { version: 1, sha256Hash } } })
    const accept = query.startsWith('subscription') ? 'text/event-stream' : 'application/json'
    const response = await fetch(endpoint, { method: 'POST', headers: { 'Content-Type': 'application/json', Accept: accept }, body })
    assert.equal(response.status, 200)
    await response.body!.cancel()
  }
  return manifest
}

/** A WebSocket that records the texts of documents that it sends. */
function recordedSocket(t: TestContext) {
  const sent: unknown[] = []
  class Recorded extends WebSocket {
    override send(text: string) {
      const { type, payload } = JSON.parse(text)
      if (type === 'subscribe') sent.push(payload.query)
      super.send(text)
    }
  }
  const socket = createClient({ url: socketEndpoint, webSocketImpl: Recorded, jsonMessageReplacer: withoutPersistedText, ...reconnecting })
  t.after(() => socket.dispose())
  return { socket, sent }
}

test('Apollo sends the ids of trusted documents', async t => {
  const [tokenId] = await openTokens()
  const manifest = await register(TokenPriceDocument, PriceChangedDocument)
  const requests = recorder()
  const { socket, sent } = recordedSocket(t)
  const link = persistedLink(manifest).concat(ApolloLink.split(
    ({ operationName }) => operationName === 'PriceChanged', new GraphQLWsLink(socket), new HttpLink({ uri: endpoint, fetch: requests.fetch }),
  ))
  const client = new ApolloClient({ link, cache: new InMemoryCache() })
  t.after(() => client.stop())
  assert.ok((await client.query({ query: TokenPriceDocument, variables: { tokenId }, fetchPolicy: 'no-cache' })).data?.token?.price)
  assert.ok((await take(iterate(client.subscribe({ query: PriceChangedDocument, variables: { tokenIds: [tokenId] } })))).data?.priceChanged)
  assert.ok((await client.query({ query: AccountDocument, variables: { address }, errorPolicy: 'all' })).data?.serviceStatus)
  assert.deepEqual(requests.made.map(({ document }) => document), [false, true])
  assert.deepEqual(sent, [undefined])
})

test('urql sends the ids of trusted documents', async t => {
  const [tokenId] = await openTokens()
  const manifest = await register(TokenPriceDocument, PriceChangedDocument)
  const requests = recorder()
  const { socket, sent } = recordedSocket(t)
  const forwardSubscription = ({ query, variables, extensions }: { query?: string | undefined; variables?: OperationVariables | undefined; extensions?: Record<string, unknown> | undefined }) => ({
    subscribe: (sink: Parameters<typeof socket.subscribe>[1]) => ({ unsubscribe: socket.subscribe({ query: query ?? '', variables, extensions }, sink) }),
  })
  const client = new Client({
    url: endpoint, preferGetMethod: false, fetch: requests.fetch,
    exchanges: [persistedExchange(manifest), fetchExchange, subscriptionExchange({ forwardSubscription: forwardSubscription as never })],
  })
  assert.ok((await client.query(TokenPriceDocument, { tokenId })).data?.token?.price)
  assert.ok((await client.query(AccountDocument, { address })).data?.serviceStatus)
  const event = await new Promise<{ data?: { priceChanged: unknown } | undefined }>(resolve => {
    const { unsubscribe } = client.subscription(PriceChangedDocument, { tokenIds: [tokenId] }).subscribe(result => {
      resolve(result)
      setTimeout(() => unsubscribe())
    })
  })
  assert.ok(event.data?.priceChanged)
  assert.deepEqual(requests.made.map(({ document }) => document), [false, true])
  assert.deepEqual(sent, [undefined])
})

test('the guide forwards the extensions of subscriptions', () => {
  const forwarded = guide.match(/forwardSubscription: .*\n.*/g)?.join('\n') ?? ''
  assert.match(forwarded, /\(\{ query, variables, extensions \}\) => .*\n.*socket\.subscribe\(\{ query: query \?\? '', variables, extensions \}, sink\)/)
})

test('the names of a manifest', () => {
  const body = 'fragment F on User { query Wrong: id } # query Wrong\nquery Right($a: String = "query Wrong {") { user(address: $a) { ...F } }'
  assert.deepEqual([...documentIds({ a: body })], [['Right', 'a']])
  assert.deepEqual([...documentIds({ operations: [{ id: 'b', name: 'Other' }] })], [['Other', 'b']])
  assert.throws(() => documentIds({ a: '{ viewer { id } }' }), /no name/)
  assert.throws(() => documentIds({ a: 'query A { a }', b: 'query A { b }' }), /two documents/)
})

/** A proxy that refuses the first requests with these statuses, and forwards all others. Status 0 closes the connection. */
async function refusing(t: TestContext, ...statuses: number[]) {
  const left = [...statuses]
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const status = left.shift()
    requests.push(String(status ?? 'forwarded'))
    if (status === 0) return void request.socket.destroy()
    if (status !== undefined) return void response.writeHead(status, { 'Content-Type': 'text/html', 'Retry-After': '0' }).end('<html>busy</html>')
    const headers = { 'Content-Type': 'application/json', Accept: String(request.headers.accept ?? '*/*') }
    const answer = await fetch(endpoint, { method: 'POST', headers, body: Buffer.concat(chunks) })
    response.writeHead(answer.status, { 'Content-Type': answer.headers.get('Content-Type')! }).end(await answer.text())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`, requests }
}

for (const statuses of [[429, 502, 503], [504], [0]]) {
  test(`retries after ${statuses.map(status => status || 'a closed connection').join(', ')}`, async t => {
    const [tokenId] = await openTokens()
    const want = [...statuses.map(String), 'forwarded']
    const apollo = await refusing(t, ...statuses)
    const client = new ApolloClient({ link: retryLink().concat(new HttpLink({ uri: apollo.url })), cache: new InMemoryCache() })
    t.after(() => client.stop())
    assert.ok((await client.query({ query: TokenPriceDocument, variables: { tokenId } })).data?.token?.price)
    assert.deepEqual(apollo.requests, want)

    const apollo3 = await refusing(t, ...statuses)
    const link3 = ApolloLink3.from([retryLink() as unknown as ApolloLink3, new HttpLink3({ uri: apollo3.url, fetch })])
    const client3 = new ApolloClient3({ link: link3, cache: new InMemoryCache3() })
    t.after(() => client3.stop())
    assert.ok((await client3.query({ query: TokenPriceDocument, variables: { tokenId } })).data?.token?.price)
    assert.deepEqual(apollo3.requests, want)

    const urql = await refusing(t, ...statuses)
    const other = new Client({ url: urql.url, preferGetMethod: false, exchanges: [retryExchange(), fetchExchange] })
    assert.ok((await other.query(TokenPriceDocument, { tokenId })).data?.token?.price)
    assert.deepEqual(urql.requests, want)
  })
}

test('other failures are delivered at once', async t => {
  for (const status of [404, 500]) {
    const apollo = await refusing(t, status)
    const client = new ApolloClient({ link: retryLink().concat(new HttpLink({ uri: apollo.url })), cache: new InMemoryCache() })
    t.after(() => client.stop())
    await assert.rejects(client.query({ query: AccountDocument, variables: { address } }))
    assert.deepEqual(apollo.requests, [String(status)])
    const urql = await refusing(t, status)
    const other = new Client({ url: urql.url, preferGetMethod: false, exchanges: [retryExchange(), fetchExchange] })
    assert.ok((await other.query(AccountDocument, { address })).error?.networkError)
    assert.deepEqual(urql.requests, [String(status)])
  }
})

test('credentials beyond Latin-1', () => {
  const credentials = { apiKey: 'k', passphrase: 'päß 密码 🗝' }
  const decode = (header: string) => Buffer.from(header, 'base64').toString('utf8')
  assert.equal(decode(credentialsHeader(credentials)['X-Venue-Credentials']), JSON.stringify(credentials))
  assert.equal(decode(credentialsHeader('{ "a": "é" }')['X-Venue-Credentials']), '{ "a": "é" }')
})
