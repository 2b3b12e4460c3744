// What a trader sees on each width of the board: names, outcomes, and sums that add up. Some checks make the service fail.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenPath } from '../live/route'
import { book, go, paths, prices, watchShifts } from './board'
import { ask, control, eventually, phone, visit, wantAccessible } from './browser'

for (const width of [768, 800, 834, 1024]) {
  test(`markets have names, and nothing jumps: ${width}`, async t => {
    const { page } = await visit(t, 'about:blank', { viewport: { width, height: 1100 }, hasTouch: true })
    const wantStill = await watchShifts(t, page)
    await page.goto('/live')
    const [path] = await paths(page)
    const names = await page.evaluate(() => [...document.querySelectorAll('.markets tbody th')].map(name => name.getBoundingClientRect().width))
    assert.ok(names.length > 5 && names.every(width => width > 250), names.join())
    await wantStill('markets')
    await page.goto('about:blank')
    await page.goto(`/live${path}`)
    await page.locator('.canvas[aria-label^=From]').waitFor()
    await eventually('a book', () => book(page), ({ bids, asks }) => bids.length + asks.length > 0)
    await wantStill('market')
    await page.goto('about:blank')
    await page.goto(`/live${await mostOutcomes()}`)
    await eventually('all prices', () => page.evaluate(() => [document.querySelectorAll('.outcomes a').length, document.querySelectorAll('.outcomes .price').length] as const), ([links, prices]) => links > 2 && links === prices)
    await wantStill('market of many outcomes')
  })
}

/** The path of the market with the most outcomes. */
async function mostOutcomes() {
  const { searchMarkets: { nodes } } = await ask<{ searchMarkets: { nodes: Listed[] } }>('{ searchMarkets(first: 60) { nodes { id marketId tokens { id tokenId } } } }', {})
  const { marketId, tokens } = nodes.reduce((most, market) => (market.tokens.length > most.tokens.length ? market : most))
  return tokenPath(marketId, tokens[0]!.tokenId)
}

interface Listed { marketId: string; tokens: { tokenId: string }[] }

test('a market that cannot be read says so, and nothing jumps', async t => {
  t.after(() => control('reset', {})) // without this, the faults remain if this test fails
  const { page } = await visit(t, 'about:blank', { viewport: { width: 800, height: 1100 }, hasTouch: true })
  const wantStill = await watchShifts(t, page)
  await control('faults', { faults: [{ kind: 'status', status: 503 }, { on: 'opens', kind: 'status', status: 503 }] })
  await control('restart', { code: 4003 }) // closes the open streams
  await page.goto('/live#/market/unread/unread')
  await page.getByRole('alert').getByText('The market could not be read: ').waitFor()
  await page.locator('.chart').getByRole('alert').waitFor()
  await page.locator('.book').getByRole('alert').waitFor()
  assert.equal(await page.getByText('does not know').count(), 0)
  await wantStill('market that cannot be read')
  await wantAccessible(page)
})

test('fingers can hit what a phone shows', async t => {
  const { page } = await visit(t, '/live', { viewport: phone, hasTouch: true })
  const small = (least: number, selector: string) => page.evaluate(([least, selector]) => (
    [...document.querySelectorAll(selector)].filter(element => element.checkVisibility()).flatMap(element => {
      const { width, height } = element.getBoundingClientRect()
      return Math.min(width, height) < least ? [`${width} × ${height} ${element.outerHTML.slice(0, 80)}`] : []
    })), [least, selector] as const)
  const main = 'header nav a, .find, main input, main select, .chips button, .outcomes a, .star, button.primary'
  const want = async () => {
    assert.deepEqual(await small(24, 'button, input, select, .button'), [])
    assert.deepEqual((await small(44, main)), [])
  }
  const [path] = await paths(page)
  await want()
  await go(page, path!)
  await eventually('a book', () => book(page), ({ bids, asks }) => bids.length + asks.length > 0)
  await want()
  await go(page, '#/portfolio')
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  const outcomes = () => page.evaluate(() => [...document.querySelectorAll<HTMLElement>('.positions tr[data-position] th')].map(head => head.innerText))
  await eventually('the outcome of each position', outcomes, all => all.length > 5 && all.every(text => /\n(Yes|No|\S.*?) [\d,.]+ at [\d.]+¢ now/i.test(text)))
  await want()
})

test('the sums of a portfolio add up', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  const sums = () => page.evaluate(() => ['total', 'positions', 'cash'].map(name => document.querySelector<HTMLElement>(`[data-sum=${name}]`)?.innerText ?? ''))
  await eventually('the sums', sums, ([total, ...parts]) => {
    const hundredths = (text: string) => [...text.matchAll(/[\d,]+\.\d\d/g)].reduce((sum, [figure]) => sum + Math.round(100 * Number(figure.replaceAll(',', ''))), 0)
    return hundredths(total!) > 0 && hundredths(total!) === parts.reduce((sum, text) => sum + hundredths(text), 0)
  })
  await page.locator('.sums').getByText(/^on a cost of \$[\d,]+\.\d\d$/).waitFor()
  await page.locator('[data-sum=day]', { hasText: /\$\d.* in 24 h/ }).waitFor()
})

test('a page says the same price of an outcome everywhere, and the outcomes of a question add up', async t => {
  const { page } = await visit(t, '/live')
  await go(page, (await paths(page))[0]!)
  const read = () => page.evaluate(() => ({
    headline: document.querySelector<HTMLElement>('.headline .price')?.innerText,
    own: document.querySelector<HTMLElement>('.outcomes [aria-current] .price')?.innerText,
    outcomes: [...document.querySelectorAll<HTMLElement>('.outcomes .price')].map(price => price.innerText),
  }))
  await eventually('equal prices', read, ({ headline, own, outcomes }) => headline !== undefined && headline === own
    && (outcomes.length !== 2 || Math.abs(outcomes.reduce((sum, text) => sum + Number.parseFloat(text), 0) - 100) < 1e-9))
})

test('an event that could not be read is not an unknown event', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  let failing = true
  await page.route('**/graphql', route => {
    if (!failing || !route.request().postData()?.includes('query EventPage')) return route.fallback()
    return route.fulfill({ json: { data: { event: null }, errors: [{ message: 'the venue is not available', path: ['event'], extensions: { code: 'UPSTREAM_UNAVAILABLE', retryAfterMs: 60_000 } }] } })
  })
  await page.getByRole('button', { name: 'By event' }).click()
  await page.locator('.cards h2 a').first().click()
  await page.getByRole('alert').getByText('The event could not be read: the venue is not available').waitFor()
  assert.equal(await page.getByText('does not know').count(), 0)
  failing = false
  await page.getByRole('button', { name: 'Try again now' }).click()
  await page.locator('.bars .bar-row .figure', { hasText: '¢' }).first().waitFor()
  await go(page, '#/event/nothing')
  await page.getByRole('alert').getByText('The venue does not know this event.').waitFor()
  await page.getByRole('link', { name: 'All events' }).click()
  const named = () => page.evaluate(() => [...document.querySelectorAll<HTMLElement>('.cards .bar-row span:first-child')].map(name => name.innerText))
  await eventually('named outcomes', named, all => all.length > 5 && all.every(Boolean))
})
