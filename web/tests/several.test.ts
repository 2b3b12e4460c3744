// The board over two venues: Polymarket first, and Kalshi.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { go, prices } from './board'
import { endpoint, eventually, visit, wantAccessible } from './browser'

const rows = '.markets tbody tr[data-market]'

test('rows of both venues, and of one', async t => {
  const { page } = await visit(t, '/live')
  const tags = () => page.locator(`${rows} .tag.venue`).allInnerTexts()
  const all = await eventually('rows of both venues', tags, all => all.length >= 20 && all.includes('kalshi'))
  assert.deepEqual(all.slice(0, 4), ['polymarket', 'kalshi', 'polymarket', 'kalshi'])
  await page.getByText('Not sorted: kalshi: ').waitFor()
  await prices(page)
  const sums = await page.locator(`${rows} .volume24h`).allInnerTexts()
  assert.match(sums[0]!, / USDC$/)
  assert.deepEqual(await page.locator('.markets th.volume24h').allInnerTexts(), ['24 h volume'])
  await page.getByLabel('Venue').selectOption('kalshi')
  await eventually('rows of Kalshi', tags, all => all.length >= 20 && all.every(name => name === 'kalshi'))
  assert.match(page.url(), /venue=kalshi/)
  await wantAccessible(page)
})

test('money in the unit of each venue', async t => {
  const { page } = await visit(t, '/live')
  for (const [name, unit] of [['polymarket', / USDC$/], ['kalshi', /^\$/]] as const) {
    const row = page.locator(rows, { has: page.locator('.tag.venue', { hasText: name }) }).first()
    await row.locator('a').first().click()
    await page.getByRole('textbox', { name: 'Shares' }).fill('10')
    await eventually('the cost', () => page.locator('.fill dd').allInnerTexts(), all => all.some(text => unit.test(text)))
    await go(page, '#/')
  }
})

test('a venue that fails', async t => {
  const visited = await visit(t, '/live')
  const { page } = visited
  await prices(page)
  await page.route(endpoint, async route => {
    const response = await route.fetch()
    const body = await response.json()
    if (body.data?.searchMarkets) {
      body.data.searchMarkets.nodes = body.data.searchMarkets.nodes.filter((row: { venue: string }) => row.venue === 'polymarket')
      body.errors = [{ message: 'no answer', path: ['searchMarkets'], extensions: { code: 'UPSTREAM_UNAVAILABLE', venue: 'kalshi' } }]
    }
    await route.fulfill({ response, json: body })
  })
  await page.getByRole('searchbox').fill('will')
  await page.getByRole('alert').getByText('Some markets could not be read: kalshi: no answer').waitFor()
  const names = await eventually('rows of Polymarket', () => page.locator(`${rows} .tag.venue`).allInnerTexts(), all => all.length > 0)
  assert.deepEqual([...new Set(names)], ['polymarket'])
  await page.unrouteAll({ behavior: 'ignoreErrors' }) // a request may still be on its way when the page closes
})

test('the pill names a venue that is down, which the panel of faults chooses', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  const pill = page.locator('.pill')
  await pill.getByText('Live', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Faults' }).click()
  const panel = page.getByRole('region', { name: 'Faults of the demo venue' })
  await panel.getByLabel('Demo venue').selectOption('kalshi')
  await panel.getByRole('button', { name: 'Drop stream' }).click()
  await pill.getByText('Stream of kalshi down since').waitFor()
  await wantAccessible(page)
  await panel.getByRole('button', { name: 'Repair all' }).click()
  await pill.getByText('Live', { exact: true }).waitFor()
})
