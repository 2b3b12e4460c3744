// graphql-request: queries without a cache, and no subscriptions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { print } from 'graphql'
import { ClientError, GraphQLClient, gql } from 'graphql-request'
import { AccountDocument, type AccountQuery, TokenPriceDocument } from './__generated__/operations.js'
import { address, credentials, endpoint, malformed, openTokens } from './server.js'

const anonymous = new GraphQLClient(endpoint)

test('a query', async () => {
  const [tokenId] = await openTokens()
  const { token } = await anonymous.request(TokenPriceDocument, { tokenId })
  assert.match(token!.price!.price, /^0\.\d+$/)
})

test('a query by GET', async () => {
  const client = new GraphQLClient(endpoint, { method: 'GET', jsonSerializer: JSON })
  const { serviceStatus } = await client.request<{ serviceStatus: { demo: boolean } }>(gql`{ serviceStatus { demo } }`)
  assert.equal(serviceStatus.demo, true)
})

test('a branch that fails leaves the others alone', async () => {
  const client = new GraphQLClient(endpoint, { errorPolicy: 'all' })
  const { data, errors } = await client.rawRequest<AccountQuery>(print(AccountDocument), { address })
  assert.equal(data.serviceStatus.demo, true)
  assert.equal(data.user?.balance, null)
  assert.deepEqual(errors?.map(e => [e.path, e.extensions.code]), [[['user', 'balance'], 'UNAUTHENTICATED']])
})

test('a document that is not valid', async () => {
  await assert.rejects(anonymous.request(gql`{ nothing }`), (error: ClientError) => {
    assert.equal(error.response.errors?.[0]?.extensions.code, 'GRAPHQL_VALIDATION_FAILED')
    assert.equal(error.response.data, undefined)
    return true
  })
})

test('credentials', async () => {
  const client = new GraphQLClient(endpoint, { headers: credentials() })
  const { user } = await client.request(AccountDocument, { address })
  assert.match(user!.balance!.cashBalance!, /^\d+(\.\d+)?$/)
})

test('a wrong secret', async () => {
  const client = new GraphQLClient(endpoint, { headers: credentials('wrong'), errorPolicy: 'all' })
  const { errors } = await client.rawRequest<AccountQuery>(print(AccountDocument), { address })
  assert.deepEqual(errors?.map(e => e.extensions.code), ['UNAUTHENTICATED'])
})

test('malformed credentials', async () => {
  const client = new GraphQLClient(endpoint, { headers: malformed })
  await assert.rejects(client.request(AccountDocument, { address }), (error: ClientError) => {
    assert.equal(error.response.status, 400)
    return true
  })
})

test('a query that is given up', async () => {
  const controller = new AbortController()
  const answer = new GraphQLClient(endpoint, { signal: controller.signal }).request(AccountDocument, { address })
  controller.abort()
  await assert.rejects(answer, { name: 'AbortError' })
})
