// The wallet on the live board: its sums, its lists, its profit, and 2,000 positions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { go, prices } from './board'
import { realised, type Entry } from '../live/realised'
import { eventually, mainThread, phone, visit, wantAccessible } from './browser'

test('sums have the currency of the venue', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  const currency = await page.evaluate(async () => {
    const response = await fetch('/graphql', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"query":"{ serviceStatus { currency } }"}' })
    return (await response.json()).data.serviceStatus.currency as string
  })
  const symbol = new Intl.NumberFormat('en', { style: 'currency', currency }).formatToParts(0).find(({ type }) => type === 'currency')!.value
  await eventually('a sum', () => page.locator('[data-sum=total]').innerText(), text => text.includes(symbol) && /\d/.test(text))
  await go(page, '#/')
  await prices(page)
  await eventually('a volume', () => page.locator('.markets td.wide').allTextContents(), all => all.some(text => text.startsWith(symbol)))
})

test('2,000 positions have few rows in the page, which is mostly idle', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  await page.getByLabel('Address').fill('0x3333333333333333333333333333333333333333')
  await page.getByLabel('API key').fill('demo-2000')
  for (const field of ['Secret', 'Passphrase']) await page.getByLabel(field).fill('demo')
  await page.getByRole('button', { name: 'Open', exact: true }).click()
  await eventually('all positions', () => page.locator('.positions').getAttribute('aria-rowcount'), n => n === '2001')
  const nodes = () => page.evaluate(() => document.querySelectorAll('*').length)
  const first = await nodes()
  assert.ok(first < 3000, `${first} nodes`)
  const share = await mainThread(page, 10)
  t.diagnostic(`2,000 positions: ${first} nodes, ${(100 * share).toFixed(1)} % of the main thread`)
  assert.ok(share < 0.15, `${share} of the main thread`)
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight))
  await page.locator('tr[aria-rowindex="2001"]').waitFor()
  assert.ok(await nodes() < 3000)
})

test('positions on a phone are rows of one height with readable names', async t => {
  const { page } = await visit(t, '/live#/portfolio', { viewport: phone })
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  // evaluateAll would find the rows first and measure them later. A row that the page removes in between has no height.
  const measure = () => page.evaluate(() => [...document.querySelectorAll('.positions tr[data-position]')].map(row => (
    [row.getBoundingClientRect().height, row.querySelector('th')!.getBoundingClientRect().width])))
  const rows = await eventually('positions', measure, rows => rows.length > 5)
  assert.ok(rows.every(([height, width]) => height! < 64 && width! > 120), JSON.stringify(rows))
})

test('the lists of a wallet are read', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  await eventually('positions', () => page.locator('.positions tbody tr').count(), n => n > 10)
  for (const name of ['Orders', 'Trades', 'History']) {
    await page.getByRole('button', { name, exact: true }).click()
    await eventually(name, () => page.locator(`[data-list=${name.toLowerCase()}] tbody tr`).count(), n => n > 0)
    await wantAccessible(page)
  }
})

test('a settled position is lost only if the server says so', async t => {
  const { page } = await visit(t, '/live', { viewport: { width: 1280, height: 4000 } }) // tall enough to show all rows
  const redeemable = new Map<string, boolean | null>()
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    server.onMessage(message => {
      const frame = JSON.parse(String(message))
      for (const position of frame.payload?.data?.portfolioChanged?.changed ?? []) {
        if (!redeemable.has(position.id)) redeemable.set(position.id, [true, false, null][redeemable.size % 3]!)
        position.market.status = 'RESOLVED'
        position.redeemable = redeemable.get(position.id)
      }
      socket.send(JSON.stringify(frame))
    })
  })
  await go(page, '#/portfolio')
  await page.reload()
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  const read = () => page.locator('.positions tr[data-position]').evaluateAll(rows => (rows as HTMLElement[]).map(row => ({
    id: row.dataset.position!, tag: row.querySelector('th .tag:last-child')!.textContent,
  })))
  const shown = await eventually('positions', read, all => all.length > 10)
  const tag = (can: boolean | null | undefined) => can ? 'Redeem' : can === false ? 'Lost' : 'Resolved'
  assert.deepEqual(shown, shown.map(({ id }) => ({ id, tag: tag(redeemable.get(id)) })))
  assert.equal(new Set(shown.map(({ tag }) => tag)).size, 3)
})

test('the sign of an amount in the history follows from its record', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  const record = (id: string, kind: string, side: string | null, amount: string | null) => (
    { __typename: 'HistoryRecord', id, kind, side, amount, timestamp: '2026-01-02T03:04:05.000Z', outcome: null, size: null, market: null })
  const nodes = [
    record('a', 'TRADE', 'BUY', '40'), record('b', 'TRADE', 'SELL', '50'), record('c', 'FEE', null, '1'),
    record('d', 'UNKNOWN', null, '2'), record('e', 'TRADE', 'BUY', '-30'), record('f', 'REDEEM', null, null),
  ]
  await page.route('**/graphql', route => {
    if (!route.request().postData()?.includes('query WalletHistory')) return route.fallback()
    const history = { __typename: 'HistoryConnection', nodes, pageInfo: { __typename: 'PageInfo', hasNextPage: false, endCursor: null } }
    return route.fulfill({ json: { data: { user: { __typename: 'User', id: 'user', history } } } })
  })
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  await page.getByRole('button', { name: 'History', exact: true }).click()
  const amounts = () => page.locator('[data-list=history] tbody td:nth-child(3)').allTextContents()
  const shown = await eventually('the records', amounts, all => all.length === nodes.length)
  assert.deepEqual(shown.map(text => /\S+$/.exec(text)?.[0].replace('$', '')), ['−40.00', '+50.00', '−1.00', '2.00', '−30.00', '–'])
})

test('profit and allocation are drawn from history and positions', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  await page.getByRole('button', { name: 'Profit', exact: true }).click()
  await eventually('a profit', () => page.locator('[data-profit]').getAttribute('data-profit'), profit => Number.isFinite(Number(profit ?? NaN)))
  await eventually('its line', () => page.locator('.line path').nth(1).getAttribute('d'), line => (line?.match(/H/g)?.length ?? 0) > 10)
  const shares = (await page.locator('.allocation .figure').allTextContents()).map(text => Number(/([\d.]+)%$/.exec(text)?.[1]))
  assert.ok(shares.length > 2 && Math.abs(shares.reduce((sum, share) => sum + share, 0) - 100) < 1, shares.join())
  await wantAccessible(page)
})

/** A record of the given minute. It is a trade unless record says otherwise. */
const at = (minute: number, record: Partial<Entry>): Entry => ({ id: String(minute), kind: 'TRADE', timestamp: new Date(60_000 * minute).toISOString(), ...record })

test('realised profit counts sales, redemptions, fees and rewards', () => {
  const { steps, unknown } = realised([
    at(5, { kind: 'REDEEM', tokenId: 'a', amount: '10', size: '10' }),
    at(1, { side: 'BUY', tokenId: 'a', amount: '-8', size: '20' }),
    at(2, { side: 'SELL', tokenId: 'a', amount: '6', size: '10' }),
    at(3, { kind: 'FEE', amount: '-0.5' }),
    at(4, { kind: 'DEPOSIT', amount: '1000' }),
    at(6, { side: 'SELL', tokenId: 'b', amount: '6', size: '10' }),
    at(7, { side: 'SELL', tokenId: 'c', amount: '6', size: '10' }),
  ], new Map([['b', 0.5]]))
  assert.deepEqual(steps.map(({ profit }) => profit), [2, 1.5, 7.5, 8.5])
  assert.equal(unknown, 1)
})

test('realised profit does not depend on the sign of amounts', () => {
  const { steps, unknown } = realised([
    at(1, { side: 'BUY', tokenId: 'a', amount: '40', size: '100' }),
    at(2, { side: 'SELL', tokenId: 'a', amount: '50', size: '100' }),
    at(3, { kind: 'FEE', amount: '1' }),
    at(4, { kind: 'REWARD', amount: '3' }),
  ], new Map())
  assert.deepEqual(steps.map(({ profit }) => profit), [10, 9, 12])
  assert.equal(unknown, 0)
})

test('a record without an amount has its price times its size, or is left out', () => {
  const { steps, unknown } = realised([
    at(1, { side: 'BUY', tokenId: 'a', amount: null, price: '0.5', size: '30' }),
    at(2, { side: 'SELL', tokenId: 'a', amount: null, price: '0.75', size: '10' }),
    at(3, { side: 'SELL', tokenId: 'a', amount: null, size: '10' }),
    at(4, { side: 'BUY', tokenId: 'a', amount: null, size: '10' }),
    at(5, { kind: 'FEE', amount: null, price: '0.75', size: '10' }),
    at(6, { side: 'SELL', tokenId: 'a', amount: '6', size: '10' }),
  ], new Map())
  assert.deepEqual(steps.map(({ profit }) => profit), [2.5, 3.5])
  assert.equal(unknown, 3)
})
