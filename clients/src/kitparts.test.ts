// The parts of @oddsgraph/kit that need no server: decimals, errors, lists and retries.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApolloClient, ApolloLink, InMemoryCache, Observable, gql } from '@apollo/client'
import { Client, fetchExchange } from '@urql/core'
import {
  ageMs, applyOrders, applyPortfolio, applyTrades, codeOf, compareDecimals, decimal, errorCodes, formatDecimal, isDecimal, isRetryable, messagesOf, retryDelay, serverDate,
  socketOptions, watchSocket, type UpdateReason,
} from '@oddsgraph/kit'
import { applyPortfolio as applyPortfolioToCache, applyTrades as applyTradesToCache, possibleTypes, retryLink, typePolicies } from '@oddsgraph/kit/apollo'
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

test('each message of an error is said once', () => {
  const errors = [{ message: 'the venue is not available' }, { message: 'the venue is not available' }, { message: 'another' }]
  for (const error of [errors, { errors, message: 'joined' }, { graphQLErrors: errors, message: 'joined' }]) {
    assert.deepEqual(messagesOf(error), ['the venue is not available', 'another'])
  }
  assert.deepEqual(messagesOf(new TypeError('no connection')), ['no connection'])
  assert.deepEqual(messagesOf({ graphQLErrors: [], message: '[Network] no connection' }), ['[Network] no connection'])
  assert.deepEqual([messagesOf(undefined), messagesOf(null)], [[], []])
})

test('a socket tells its state', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const listeners = new Map<string, (about?: unknown) => void>()
  let ended = 0
  const { status, subscribe } = watchSocket({ on: (event, listener) => listeners.set(event, listener), terminate: () => { ended++ } })
  const states: string[] = []
  subscribe(() => states.push(`${status().state} ${status().session}`))
  const tell = (event: string, about?: unknown) => listeners.get(event)!(about)
  for (const event of ['connecting', 'connected']) tell(event)
  for (let failed = 0; failed < 2; failed++) {
    tell('closed', { code: 1006 })
    tell('connecting')
  }
  tell('connected')
  for (const answered of [true, false]) {
    tell('ping', false)
    if (answered) tell('pong', true)
    t.mock.timers.tick(5_000)
    assert.equal(ended, answered ? 0 : 1)
  }
  tell('closed', { code: 4403 })
  tell('closed', { code: 1000 })
  assert.deepEqual(states, ['connecting 0', 'open 1', 'lost 1', 'open 2', 'refused 2', 'idle 2'])
  assert.deepEqual([4403, 1006].map(code => socketOptions.shouldRetry({ code })), [false, true])
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
  const timed = (id: string, timestamp: string) => ({ id, timestamp })
  const earlier = [timed('1', '2026-01-01T00:00:01Z'), timed('2', '2026-01-01T00:00:01.5Z')]
  assert.deepEqual(
    applyTrades([timed('3', '2026-01-01T00:00:02Z')], { reason: 'RESYNC', gap: false, trades: earlier }).map(({ id }) => id), ['3', '2', '1'],
  )
  assert.deepEqual(applyTrades([row('1')], { ...trades('7', '8'), reason: 'RESYNC', gap: true }).map(({ id }) => id), ['8', '7'])
  assert.deepEqual(applyTrades([row('1')], { ...trades('2'), reason: 'INITIAL' }).map(({ id }) => id), ['2'])
  assert.deepEqual(applyTrades([row('2'), row('1')], trades('3'), 2).map(({ id }) => id), ['3', '2'])
})

const objects = { Position: gql`fragment PositionId on Position { id }`, Trade: gql`fragment TradeId on Trade { id }` }

/** A cache of Apollo Client with one list of the user u1. The query selects selection besides the rows, and more has the values. */
function cached(field: 'positions' | 'trades', ids: string[], more: object = {}, selection = Object.keys(more).join(' ')) {
  const type = field === 'positions' ? 'Position' : 'Trade'
  const cache = new InMemoryCache({ possibleTypes, typePolicies })
  const query = gql(`{ viewer { id ${field} { edges { cursor node { id } } ${selection} } } }`)
  const edges = ids.map(id => ({ __typename: `${type}Edge`, cursor: `after ${id}`, node: { __typename: type, id } }))
  cache.writeQuery({ query, data: { viewer: { __typename: 'User', id: 'u1', [field]: { __typename: `${type}Connection`, edges, ...more } } } })
  // Apollo Client writes the objects of an event to its cache before the kit gets the event.
  for (const id of ['p3', ...numbered(1, 60)]) cache.writeFragment({ id: `${type}:${id}`, fragment: objects[type], data: { __typename: type, id } })
  interface List { edges: { cursor: string; node: { id: string } }[]; totalCount?: number | null }
  const list = () => cache.readQuery<{ viewer: Record<string, List> }>({ query })?.viewer[field]
  return { cache, list, shown: () => list()?.edges.map(({ node }) => node.id) }
}

/** The ids of trades: t1 is the oldest. */
const numbered = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `t${from + i}`)

test('events add only new trades to a list in the cache of Apollo Client', () => {
  const event = (reason: UpdateReason, ids: string[]) => ({ reason, trades: ids.map(id => ({ id })), gap: false })
  const newest = (from: number, to: number) => numbered(from, to).reverse()

  // The first page has 20 of 50 trades. INITIAL has all 50.
  const page = cached('trades', newest(31, 50), { totalCount: 50 })
  applyTradesToCache(page.cache, 'u1', event('INITIAL', numbered(1, 50)))
  assert.deepEqual([page.shown(), page.list()!.totalCount], [newest(31, 50), 50])
  applyTradesToCache(page.cache, 'u1', event('CHANGE', ['t51']))
  // After a reconnect: one trade is new.
  applyTradesToCache(page.cache, 'u1', event('INITIAL', numbered(3, 52)))
  assert.deepEqual([page.shown(), page.list()!.totalCount], [newest(31, 52), 52])
  applyTradesToCache(page.cache, 'u1', event('RESYNC', numbered(4, 53)))
  assert.deepEqual([page.shown(), page.list()!.totalCount], [newest(31, 53), 53])
  // A late trade is not lost, although an event with newer trades came first.
  applyTradesToCache(page.cache, 'u1', event('CHANGE', ['t55']))
  applyTradesToCache(page.cache, 'u1', event('RESYNC', ['t53', 't54', 't55']))
  assert.deepEqual(page.shown(), ['t54', 't55', ...newest(31, 53)])

  // More trades than an event can have were made while the client was not connected.
  const outdated = cached('trades', newest(1, 5))
  applyTradesToCache(outdated.cache, 'u1', event('INITIAL', numbered(11, 60)))
  assert.equal(outdated.shown(), undefined)

  // The account had no trades when the list was read. The venue does not say how many trades there are.
  const empty = cached('trades', [], { totalCount: null })
  applyTradesToCache(empty.cache, 'u1', event('INITIAL', ['t1', 't2']))
  assert.deepEqual([empty.shown(), empty.list()!.totalCount], [['t2', 't1'], null])
})

test('an event brings back what a query could not read', () => {
  const cache = new InMemoryCache({ possibleTypes, typePolicies })
  const query = gql`{ viewer { id portfolio { id } positions { nodes { id } } } }`
  cache.writeQuery({ query, data: { viewer: { __typename: 'User', id: 'u1', portfolio: null, positions: null } } })
  applyPortfolioToCache(cache, 'u1', { reason: 'INITIAL', changed: [{ id: 'p1' }], closedPositionIds: [], summary: { id: 's1' } })
  assert.equal(cache.readQuery({ query }), null) // so Apollo Client sends the query again
  assert.deepEqual(cache.extract()['User:u1']?.['portfolio'], { __ref: 'PortfolioSummary:s1' })
})

test('the next page follows a list that an event has made longer', () => {
  const pageInfo = { __typename: 'PageInfo', hasNextPage: true, endCursor: 'after t2' }
  const { cache, list } = cached('trades', ['t3', 't2'], { pageInfo }, 'pageInfo { hasNextPage endCursor }')
  applyTradesToCache(cache, 'u1', { reason: 'CHANGE', trades: [{ id: 't4' }, { id: 't5' }], gap: false })
  assert.deepEqual(list()!.edges.map(({ node }) => node.id), ['t5', 't4', 't3', 't2'])
  assert.equal(list()!.edges.at(-1)!.cursor, 'after t2')
})

test('a new position makes a list longer if the cache has the whole list', () => {
  const initial = { reason: 'INITIAL' as const, changed: [{ id: 'p1' }, { id: 'p2' }], closedPositionIds: [] }
  const opened = { reason: 'CHANGE' as const, changed: [{ id: 'p3' }], closedPositionIds: [] }
  const closed = { reason: 'CHANGE' as const, changed: [], closedPositionIds: ['p1'] }
  const pageInfo = (hasNextPage: boolean) => ({ pageInfo: { __typename: 'PageInfo', hasNextPage } })
  const apply = ({ cache, list, shown }: ReturnType<typeof cached>) => {
    for (const event of [initial, opened]) applyPortfolioToCache(cache, 'u1', event)
    const afterOpened = [shown()!.join(' '), list()!.totalCount]
    applyPortfolioToCache(cache, 'u1', closed)
    return [...afterOpened, shown()!.join(' '), list()!.totalCount]
  }
  const whole = (more: object, selection?: string) => apply(cached('positions', ['p1', 'p2'], more, selection))
  const partial = (more: object, selection?: string) => apply(cached('positions', ['p1'], more, selection))
  const selectsPageInfo = 'pageInfo { hasNextPage }'
  assert.deepEqual(whole({ totalCount: 2 }), ['p1 p2 p3', 3, 'p2 p3', 2])
  assert.deepEqual(whole({ totalCount: 2, ...pageInfo(false) }, `totalCount ${selectsPageInfo}`), ['p1 p2 p3', 3, 'p2 p3', 2])
  assert.deepEqual(whole({ totalCount: null, ...pageInfo(false) }, `totalCount ${selectsPageInfo}`), ['p1 p2 p3', 3, 'p2 p3', 2])
  assert.deepEqual(whole(pageInfo(false), selectsPageInfo), ['p1 p2 p3', undefined, 'p2 p3', undefined])
  assert.deepEqual(partial({ totalCount: 2 }), ['p1', 3, '', 2])
  assert.deepEqual(partial({ totalCount: 2, ...pageInfo(true) }, `totalCount ${selectsPageInfo}`), ['p1', 3, '', 2])
  assert.deepEqual(partial(pageInfo(true), selectsPageInfo), ['p1', undefined, '', undefined])
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
