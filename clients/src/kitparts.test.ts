// The parts of @oddsgraph/kit that need no server: decimals, errors, lists and retries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApolloClient, ApolloLink, InMemoryCache, Observable, gql } from '@apollo/client'
import { Client, fetchExchange } from '@urql/core'
import {
  ageMs, applyOrders, applyPortfolio, applyTrades, codeOf, compareDecimals, decimal, errorCodes, formatDecimal, isDecimal, isRetryable, retryDelay, serverDate, type UpdateReason,
} from '@oddsgraph/kit'
import { retryLink } from '@oddsgraph/kit/apollo'
import { retryExchange } from '@oddsgraph/kit/urql'
import type { PositionRowFragment } from './__generated__/operations.js'

const limited = (retryAfterMs: number) => ({ message: 'wait', extensions: { code: 'RATE_LIMITED', retryAfterMs } })

test('decimals are compared and formatted exactly', () => {
  for (const text of ['0', '-0.5', '0.65', '12345678901234567890.000000000000000001']) assert.ok(isDecimal(text), text)
  for (const text of ['', '.5', '1.', '01', '1e3', '+1', 'NaN', ' 1', '0x1']) {
    assert.ok(!isDecimal(text), text)
    assert.throws(() => decimal(text), RangeError)
  }
  assert.equal(compareDecimals('0.5', '0.50'), 0)
  assert.equal(compareDecimals('-0.1', '0.1'), -1)
  assert.equal(compareDecimals('9007199254740993', '9007199254740992.5'), 1) // equal as binary floating point numbers
  assert.equal(formatDecimal('9007199254740993.25', 'en-US'), '9,007,199,254,740,993.25')
  assert.equal(formatDecimal('0.655', 'en-US', { style: 'percent' }), '65.5%')
})

test('an age does not depend on the clock of the client', () => {
  const value = { receivedAt: '2026-01-31T12:00:00.500Z' }
  for (const wrong of [-3_600_000, 0, 86_400_000]) {
    const arrived = Date.parse('2026-01-31T12:00:03Z') + wrong
    const date = serverDate('Sat, 31 Jan 2026 12:00:02 GMT', arrived)
    assert.equal(ageMs(value, date, arrived), 1500)
    assert.equal(ageMs(value, date, arrived + 4000), 5500)
    assert.equal(ageMs({ receivedAt: '2026-01-31T12:00:02.900Z' }, date, arrived), 0) // Date has whole seconds
  }
  const now = Date.parse('2026-01-31T12:00:03Z')
  for (const header of [null, undefined, 'yesterday']) assert.equal(ageMs(value, serverDate(header, now), now), 2500)
})

test('generated types have branded decimals', () => {
  const row: PositionRowFragment['size'] = decimal('0.5')
  const sum = row + row
  // @ts-expect-error because the concatenation of two strings is no Decimal
  const wrong: PositionRowFragment['size'] = sum
  assert.ok(!isDecimal(wrong))
})

test('errors say whether a query may be repeated, and when', () => {
  assert.equal(codeOf({ extensions: { code: 'FORBIDDEN' } }), 'FORBIDDEN')
  assert.equal(codeOf({ extensions: { code: 'OF_A_PROXY' } }), undefined)
  assert.equal(codeOf({}), undefined)
  assert.deepEqual(errorCodes.filter(code => isRetryable({ extensions: { code } })).sort(),
    ['RATE_LIMITED', 'UPSTREAM_BAD_RESPONSE', 'UPSTREAM_TIMEOUT', 'UPSTREAM_UNAVAILABLE'])
  assert.equal(retryDelay([{ extensions: { code: 'FORBIDDEN' } }], 0), undefined)
  const within = (delay: number | undefined, least: number) => assert.ok(delay !== undefined && delay >= least && delay <= least * 1.25, `${delay}`)
  within(retryDelay([limited(4000), limited(100)], 3), 4000)
  within(retryDelay([{ extensions: { code: 'UPSTREAM_TIMEOUT' } }], 2), 4000)
  within(retryDelay([{ extensions: { code: 'UPSTREAM_TIMEOUT' } }], 20), 30_000)
})

test('events change lists', () => {
  const row = (id: string, size = '1') => ({ id, size })
  const held = [row('a'), row('b'), row('c')]
  const portfolio = (reason: 'INITIAL' | 'CHANGE', changed: ReturnType<typeof row>[], closedPositionIds: string[] = []) => ({ reason, changed, closedPositionIds })
  assert.deepEqual(applyPortfolio(held, portfolio('CHANGE', [row('b', '2'), row('d')], ['a'])), [row('b', '2'), row('c'), row('d')])
  assert.deepEqual(applyPortfolio(held, portfolio('CHANGE', [row('d', '3')], ['a']), (x, y) => compareDecimals(y.size, x.size)), [row('d', '3'), row('b'), row('c')])
  assert.deepEqual(applyPortfolio(held, portfolio('INITIAL', [row('x')])), [row('x')])
  assert.deepEqual(held, [row('a'), row('b'), row('c')])
  assert.deepEqual(applyOrders(held, { reason: 'CHANGE', changed: [], closedOrderIds: ['c', 'unknown'] }), [row('a'), row('b')])
  const trades = (...ids: string[]) => ({ reason: 'CHANGE' as UpdateReason, trades: ids.map(id => row(id)), gap: false })
  assert.deepEqual(applyTrades([row('2'), row('1')], trades('2', '3', '4')).map(({ id }) => id), ['4', '3', '2', '1'])
  assert.deepEqual(applyTrades([row('1')], { ...trades('2'), reason: 'RESYNC' }).map(({ id }) => id), ['2', '1'])
  assert.deepEqual(applyTrades([row('1')], { ...trades('7', '8'), reason: 'RESYNC', gap: true }).map(({ id }) => id), ['8', '7'])
  assert.deepEqual(applyTrades([row('1')], { ...trades('2'), reason: 'INITIAL' }).map(({ id }) => id), ['2'])
  assert.deepEqual(applyTrades([row('2'), row('1')], trades('3'), 2).map(({ id }) => id), ['3', '2'])
})

test('the link of Apollo Client repeats what may succeed later', async () => {
  const answers: ApolloLink.Result[] = [{ errors: [limited(1)] }, { errors: [limited(1)], data: { viewer: null } }, { data: { viewer: null } }]
  let sent = 0
  const server = new ApolloLink(() => new Observable(observer => {
    observer.next(answers[sent++]!)
    observer.complete()
  }))
  const client = new ApolloClient({ link: ApolloLink.from([retryLink(), server]), cache: new InMemoryCache() })
  const { data } = await client.query({ query: gql`{ viewer { id } }`, errorPolicy: 'all' })
  assert.deepEqual([data, sent], [{ viewer: null }, 3])
  sent = 0
  answers.fill({ errors: [limited(1)] })
  const once = new ApolloClient({ link: ApolloLink.from([retryLink({ attempts: 1 }), server]), cache: new InMemoryCache() })
  assert.ok((await once.query({ query: gql`{ viewer { id } }`, errorPolicy: 'all' })).error)
  assert.equal(sent, 2) // the first attempt and one retry
  once.stop()
  sent = 0
  for (const answer of [{ errors: [limited(1)], data: { viewer: { __typename: 'User', id: 'u' } } }, { errors: [limited(3_600_000)] }]) {
    answers.fill(answer)
    const direct = new ApolloClient({ link: ApolloLink.from([retryLink(), server]), cache: new InMemoryCache() })
    assert.ok((await direct.query({ query: gql`{ viewer { id } }`, errorPolicy: 'all' })).error)
    direct.stop()
  }
  assert.equal(sent, 2) // no retry: the first response has some data, the second asks for a wait that is too long
  client.stop()
})

test('the exchange of urql repeats what may succeed later', async () => {
  let sent = 0
  let succeed = 3
  const client = new Client({
    url: 'http://service.test/graphql',
    exchanges: [retryExchange({ attempts: 2 }), fetchExchange],
    fetch: async () => new Response(JSON.stringify(++sent < succeed ? { errors: [limited(1)] } : { data: { viewer: null } }), { headers: { 'Content-Type': 'application/json' } }),
  } as ConstructorParameters<typeof Client>[0])
  assert.deepEqual([(await client.query('{ viewer { id } }', {}).toPromise()).data, sent], [{ viewer: null }, 3])
  sent = 0
  succeed = Infinity
  assert.equal(codeOf((await client.query('{ viewer { address } }', {}).toPromise()).error!.graphQLErrors[0]!), 'RATE_LIMITED')
  assert.equal(sent, 3) // the first attempt and two retries
})
