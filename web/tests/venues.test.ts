// The board over other venues. Data that the venue serves work as over the demo venue, and the page says which data are missing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { book, everyFault, go, listed, paths, prices, watchShifts } from './board'
import { eventually, visit, wantAccessible } from './browser'

/** What the venue serves: see tests/e2e/capabilities_test.go. */
const serves: { sort: boolean; search: boolean; accounts: boolean; orders: boolean; cash: boolean } = JSON.parse(process.env['SERVES']!)

test('markets with live prices and their last day', async t => {
  const { page } = await visit(t, '/live')
  const first = await prices(page)
  assert.deepEqual(first.filter(({ stale }) => stale !== 'false'), [])
  await eventually('other prices', () => listed(page), all => all.map(p => p.price).join() !== first.map(p => p.price).join())
  await page.locator('.markets .change').first().waitFor()
  await page.locator('.chips .count').first().waitFor()
  assert.equal(await page.getByText(/^Not sorted: /).count(), serves.sort ? 0 : 1)
  await wantAccessible(page)
})

test('a search', async t => {
  const { page } = await visit(t, '/live')
  const question = await page.locator('.markets tbody a').nth(3).innerText()
  if (!serves.search) {
    await eventually('no field', () => page.getByRole('searchbox').count(), n => n === 0)
    await go(page, '#/?query=will')
    await page.reload()
    await page.getByRole('alert').getByText(/^The markets could not be read: /).waitFor()
    await page.getByRole('link', { name: 'Show all markets' }).click()
    await prices(page)
    return
  }
  await page.getByRole('searchbox').fill(question)
  await eventually('the market', () => page.locator('.markets tbody a').allInnerTexts(), all => all.includes(question))
})

test('a category', async t => {
  const { page } = await visit(t, '/live')
  await page.locator('.chips button:has(.count)').first().click()
  await page.waitForURL(/(category|tag)=/)
  await eventually('its markets or events', () => page.locator('.markets tbody a, .cards h2 a').count(), n => n > 0)
  assert.equal(await page.getByRole('alert').count(), 0)
})

test('a market with its chart, its book and an estimate', async t => {
  const { page } = await visit(t, '/live')
  await go(page, (await paths(page))[0]!)
  await page.locator('.headline .price').waitFor()
  await page.locator('.canvas[aria-label^=From]').waitFor()
  await eventually('a book', () => book(page), ({ bids, asks }) => bids.length > 0 || asks.length > 0)
  await page.locator('.tape [data-trade]').first().waitFor()
  await eventually('the earlier trades', () => page.locator('.tape .earlier').count(), n => n === 0)
  await page.getByRole('textbox', { name: 'Shares' }).fill('10')
  await page.locator('.ticket dl').waitFor()
  await wantAccessible(page)
})

for (const width of [768, 1440]) {
  test(`nothing jumps on the page of a market: ${width}`, async t => {
    const { page } = await visit(t, '/live', { viewport: { width, height: 1000 }, hasTouch: width < 1440 })
    const [path] = await paths(page)
    const wantStill = await watchShifts(t, page)
    await page.goto('about:blank')
    await page.goto(`/live${path}`)
    await page.locator('.canvas[aria-label^=From]').waitFor()
    await eventually('a book', () => book(page), ({ bids, asks }) => bids.length + asks.length > 0)
    const levels = () => page.evaluate(() => [...document.querySelectorAll('.ladder button')].map(level => level.getBoundingClientRect().width))
    assert.ok((await levels()).every(width => width >= 24))
    await wantStill('market')
  })
}

test('an event with its markets', async t => {
  const { page } = await visit(t, '/live#/?view=events')
  await page.locator('.cards h2 a').first().click()
  await page.waitForURL(/#\/event\//)
  await page.locator('.bars .bar-row .figure', { hasText: '¢' }).first().waitFor()
})

test('a wallet', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  if (!serves.accounts) {
    await page.getByText('shows no wallets of this venue').waitFor()
    assert.equal(await page.getByRole('textbox').count(), 0)
    return
  }
  await page.getByRole('textbox', { name: 'Address' }).fill('0x2222222222222222222222222222222222222222')
  assert.equal(await page.getByRole('textbox').count(), 1, 'no credentials are needed')
  await page.getByRole('button', { name: 'Open', exact: true }).click()
  await eventually('positions', () => page.locator('.positions tbody tr').count(), n => n > 10)
  assert.equal(await page.locator('[data-sum=cash]').count(), serves.cash ? 1 : 0)
  assert.equal(await page.getByRole('alert').count(), 0)
  await wantAccessible(page)
  await page.getByRole('button', { name: 'Orders' }).click()
  if (serves.orders) await page.locator('[data-list=orders] tbody tr').first().waitFor()
  else await page.getByRole('alert').waitFor()
})

test('every fault of the panel', async t => everyFault((await visit(t, '/live')).page))
