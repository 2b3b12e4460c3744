// The live board's behaviour for its user: routes, rows, layout and the tools of a trader.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { book, bothSides, go, listed, paths, prices, record, seen, tokenOf, watchShifts } from './board'
import { grouped } from '../live/levels'
import { ask, control, eventually, frames, phone, visit, wantAccessible } from './browser'

const rows = (page: Page) => page.locator('.markets tbody tr').count()

test('Back finds search, order, rows and place again', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  await page.getByRole('button', { name: 'Ends' }).click()
  await page.getByRole('button', { name: 'More markets' }).click()
  await eventually('more rows', () => rows(page), n => n > 25)
  const all = await rows(page)
  const link = page.locator('.markets tbody a').nth(28)
  await link.focus()
  const place = () => page.evaluate(() => ({ y: scrollY, kept: (history.state as { y?: number } | null)?.y, hash: location.hash }))
  let last = -1
  const before = await eventually('a place in the history that does not move', async () => {
    const now = await place()
    const still = now.y === last
    last = now.y
    await frames(page, 30)
    return { ...now, still }
  }, ({ y, kept, still }) => still && y > 0 && y === kept)
  await page.keyboard.press('Enter')
  await page.locator('.headline .price').waitFor()
  await page.goBack()
  await eventually('the same place', async () => ({ ...await place(), wanted: before.y }), now => now.y === before.y && now.hash === before.hash)
  assert.equal(await rows(page), all)
  assert.match(before.hash, /sort=ends/)
})

test('a market of several outcomes shows the one that leads', async t => {
  const { page } = await visit(t, '/live')
  const { market, tokens } = await eventually('such a market', () => page.evaluate(async () => {
    const query = '{ searchMarkets(first: 25, sort: VOLUME_24H, filter: { status: OPEN }) { nodes { marketId question tokens { tokenId outcome outcomeKind } } } }'
    const response = await fetch('/graphql', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ query }) })
    const { nodes } = (await response.json()).data.searchMarkets
    const market = nodes.find(({ tokens }: { tokens: { outcomeKind: string }[] }) => tokens.length > 2 && tokens[0]!.outcomeKind === 'OTHER')
    return { market, tokens: market?.tokens as { tokenId: string; outcome: string }[] }
  }), ({ market }) => market)
  const last = tokens.at(-1)!
  const row = page.locator(`tr[data-market="${market.marketId}"]`)
  await row.scrollIntoViewIfNeeded()
  const shown = () => row.evaluate((row: HTMLElement) => ({ token: row.dataset.token, outcome: row.querySelector('.outcome')?.textContent }))
  const { outcome } = await eventually('the leader', async () => {
    await control('price', { tokenId: last.tokenId, price: 0.9 })
    return shown()
  }, ({ token }) => token === last.tokenId)
  assert.equal(outcome, last.outcome)
})

test('the newest price stays on the chart when its width changes', async t => {
  const { page } = await visit(t, '/live', { viewport: { width: 1280, height: 800 } })
  // The line of the chart is the longest line that the page draws in one stroke. The test needs the end of this line.
  await page.addInitScript(() => {
    const { prototype } = CanvasRenderingContext2D
    const { beginPath, moveTo, lineTo } = prototype
    const stroke: () => void = prototype.stroke
    let end = 0
    let points = 0
    let strokes = 0
    prototype.beginPath = function () { points = 0; strokes = 0; beginPath.call(this) }
    prototype.moveTo = function (x, y) { strokes++; moveTo.call(this, x, y) }
    prototype.lineTo = function (x, y) { points++; end = x; lineTo.call(this, x, y) }
    prototype.stroke = function () {
      if (strokes === 1 && points > 50) Object.assign(globalThis, { end: { x: end, width: this.canvas.width / devicePixelRatio, points } })
      stroke.call(this)
    }
  })
  await page.reload()
  await go(page, (await paths(page))[0]!)
  interface End { x: number; width: number; points: number }
  const end = () => page.evaluate(() => (globalThis as unknown as { end?: End }).end)
  const before = await eventually('the line', end, line => line !== undefined)
  for (const width of [1200, 1000, 390]) {
    await page.setViewportSize({ width, height: 800 })
    await eventually(`all of the line at ${width}`, end, now => now!.width !== before!.width && now!.points >= before!.points - 2 && now!.x <= now!.width)
  }
})

test('the pill tells that the venue fails, while the stream is live', async t => {
  const { page } = await visit(t, '/live')
  let status: object = { upstreamReachable: false, throttledUntil: null }
  await page.route('**/graphql', async route => {
    if (!route.request().postData()?.includes('upstreamReachable')) return route.fallback()
    const response = await route.fetch()
    const { data } = await response.json() as { data: { serviceStatus: object } }
    await route.fulfill({ json: { data: { serviceStatus: { ...data.serviceStatus, ...status } } } })
  })
  await page.reload()
  const pill = page.locator('.pill')
  await pill.getByText('The venue does not answer').waitFor()
  status = { upstreamReachable: true, throttledUntil: new Date(Date.now() + 60_000).toISOString() }
  await pill.getByText('Throttled by the venue').waitFor()
  assert.match(await pill.innerText(), /, \d\d? s$/)
  status = {}
  await pill.getByText('Live', { exact: true }).waitFor()
})

test('the pill has its shape while it waits', async t => {
  const { page } = await visit(t, '/live')
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    server.onMessage(message => {
      const frame = JSON.parse(String(message))
      const status = frame.payload?.data?.streamStatusChanged
      if (status) Object.assign(status, { state: 'DISCONNECTED', lastMessageAt: null })
      socket.send(JSON.stringify(frame))
    })
  })
  await page.reload()
  const pill = page.locator('.pill', { hasText: 'Polling' })
  await pill.waitFor()
  const box = (await pill.boundingBox())!
  assert.ok(box.height < 32 && box.width > 150, JSON.stringify(box))
})

test('an ended market says so', async t => {
  const { page } = await visit(t, '/live')
  const path = (await paths(page))[20]!
  await go(page, path)
  await page.locator('.headline .price').waitFor()
  const marketId = decodeURIComponent(path.split('/')[2]!)
  await control('market', { marketId, winningTokenId: tokenOf(path) })
  await page.locator('.banner').getByText(/^Trading has ended\. .+ won\.$/).waitFor()
  await page.locator('.headline').getByText('Final').waitFor()
  await page.locator('.book').getByText('Trading has ended').waitFor()
  assert.equal(await page.getByText('Live ·').count(), 0)
  assert.equal(await page.locator('.ticket').count(), 0)
  await wantAccessible(page)
})

test('an unknown address has a page', async t => {
  const { page } = await visit(t, '/live/nonsense')
  await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
  assert.equal(await page.evaluate(() => location.pathname + location.hash), '/live#/nonsense')
})

test('the first live price comes soon after the page', async t => {
  const { page } = await visit(t, '/live')
  const ratios: number[] = []
  do { // repeat, because other checks may keep the processor busy
    await page.reload()
    await prices(page)
    const { price, page: loaded } = await page.evaluate(() => ({
      price: performance.getEntriesByName('first-price').map(({ startTime }) => startTime),
      page: (performance.getEntriesByType('navigation')[0] as PerformanceNavigationTiming).domContentLoadedEventEnd,
    }))
    assert.equal(price.length, 1)
    t.diagnostic(`the page came after ${Math.round(loaded)} ms, the first live price after ${Math.round(price[0]!)} ms`)
    ratios.push(price[0]! / loaded)
  } while (Math.min(...ratios) > 3 && ratios.length < 20)
  assert.ok(Math.min(...ratios) <= 3, `the first live price took ${ratios.map(r => r.toFixed(1)).join(', ')} times as long as the page`)
})

for (const width of [390, 1280, 1440]) {
  test(`what is shown does not jump: ${width}`, async t => {
    const { page } = await visit(t, 'about:blank', { viewport: { width, height: width === 390 ? 844 : 900 } })
    const wantStill = await watchShifts(t, page)
    const load = async (path: string) => {
      await page.goto('about:blank')
      await page.goto(path)
    }
    await load('/live')
    const [path] = await paths(page)
    await wantStill('markets')
    if (width === 1440) {
      const inView = await page.evaluate(() => [...document.querySelectorAll('.markets tbody tr')].filter(row => row.getBoundingClientRect().bottom <= innerHeight).length)
      assert.ok(inView >= 18, `${inView} rows are in view`)
    }
    const event = await page.evaluate(async () => {
      const query = '{ searchMarkets(first: 25, sort: VOLUME_24H, filter: { status: OPEN }) { nodes { event { eventId } } } }'
      const response = await fetch('/graphql', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ query }) })
      const { nodes } = (await response.json()).data.searchMarkets as { nodes: { event: { eventId: string } | null }[] }
      return nodes.find(({ event }) => event)!.event!.eventId
    })
    await page.locator('.markets .star').first().click()
    await load(`/live${path}`)
    await page.locator('.canvas[aria-label^=From]').waitFor()
    await eventually('a book', () => book(page), ({ bids, asks }) => bids.length + asks.length > 0)
    await wantStill('market')
    await load(`/live#/event/${encodeURIComponent(event)}`)
    await page.locator('.canvas:not([aria-label^="The history"])').waitFor()
    await wantStill('event')
    await load('/live#/watchlist')
    await eventually('its price', () => listed(page), all => all.length === 1)
    await wantStill('watchlist')
    await load('/live#/portfolio')
    await page.getByRole('button', { name: 'Open the demo wallet' }).click()
    await eventually('positions', () => page.locator('.positions tbody tr').count(), n => n > 10)
    await wantStill('portfolio')
    await load('/')
    await page.locator('.graphiql-query-editor .CodeMirror-line').first().waitFor()
    await page.getByText('cost:').waitFor()
    await wantStill('GraphiQL')
  })
}

test('a fill is estimated from the book with the keyboard alone, and its query opens in GraphiQL', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  const press = (...keys: string[]) => keys.reduce<Promise<unknown>>((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve())
  const tabTo = async (what: string, fits: () => Promise<boolean>) => {
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press('Tab')
      if (await fits()) return
    }
    assert.fail(`Tab does not reach ${what}`)
  }
  const has = (selector: string) => () => page.evaluate(selector => document.activeElement!.matches(selector), selector)
  // Find a market.
  const token = tokenOf((await paths(page))[2]!)
  const question = (await page.locator('.markets tbody a').nth(2).textContent())!
  await press('/')
  await page.keyboard.type(question)
  // The list of a prefix of the question may also have this market first, so wait for the list of the whole question.
  await eventually('the market first', () => page.evaluate(() => ({
    query: new URLSearchParams(location.hash.split('?')[1]).get('query'), first: document.querySelector('.markets tbody a')?.textContent,
  })), ({ query, first }) => query === question && first === question)
  await press('Tab', 'Tab', 'j', 'Enter')
  await page.getByRole('heading', { level: 1, name: question }).waitFor()
  // Read its book, and take the best ask.
  await bothSides(page, token)
  const onAsk = has('.asks tr:last-child button')
  await eventually('an estimate', async () => {
    if (!await onAsk()) await tabTo('an ask', onAsk) // the market may have taken the ask that had the focus
    await press('Enter')
    return page.locator('.fill').getAttribute('data-average')
  }, Boolean)
  // Open the query behind it.
  await tabTo('the switch of the queries', has('.tool[aria-pressed]'))
  await press('Enter')
  await tabTo('the query', has('.ticket .source'))
  await press('Enter')
  await page.getByRole('dialog').getByText('fillEstimate').waitFor()
  await eventually('its cost', () => page.locator('.cost').getAttribute('data-points'), Boolean)
  await wantAccessible(page)
  await tabTo('GraphiQL', has('dialog a.button'))
  await press('Enter')
  await eventually('the query in GraphiQL', () => page.locator('.graphiql-query-editor').innerText(), text => text.includes('fillEstimate'))
  // Sign in to the demo portfolio.
  await page.goBack()
  await page.locator('.headline .price').waitFor()
  await press('g', 'p')
  await page.getByRole('button', { name: 'Open the demo wallet' }).waitFor()
  await tabTo('the demo wallet', has('button.primary'))
  await press('Enter')
  await eventually('positions', () => page.locator('.positions tbody tr').count(), n => n > 10)
})

test('watched markets are kept, and the palette finds pages', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  const name = await page.locator('.markets tbody a').first().textContent()
  await page.locator('.markets .star').first().click()
  await page.keyboard.press('Control+k')
  await eventually('the focus in the palette', () => page.evaluate(() => document.activeElement?.getAttribute('role')), role => role === 'combobox')
  await page.keyboard.type('watch')
  await page.getByRole('option', { name: /Watchlist/ }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Watchlist' }).waitFor()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Markets' }).click()
  await page.getByRole('heading', { name: 'Markets' }).waitFor()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Watchlist' }).click()
  await page.getByRole('heading', { name: 'Watchlist' }).waitFor()
  await page.reload()
  await eventually('the market', () => page.locator('.markets tbody a').allTextContents(), all => all.join() === name)
  await eventually('its price', () => listed(page), all => all.length === 1)
  await wantAccessible(page)
})

test('an event shows its outcomes by price', async t => {
  const { page } = await visit(t, '/live', { viewport: phone })
  await prices(page)
  await page.getByRole('button', { name: 'By event' }).click()
  await page.locator('.cards h2 a').first().click()
  await eventually('outcomes', () => page.locator('.bars .figure').allTextContents(), all => {
    const cents = all.map(text => Number(/([\d.]+)¢/.exec(text)?.[1] ?? NaN))
    return cents.length > 1 && cents.every((price, i) => i === 0 || price <= cents[i - 1]!)
  })
  await page.locator('.canvas:not([aria-label^="The history"])').waitFor()
  await wantAccessible(page)
})

test('an alert fires once when the price crosses it, on any page', async t => {
  const { page } = await visit(t, '/live')
  const path = (await paths(page))[2]!
  await go(page, path)
  const tokenId = tokenOf(path)
  await control('price', { tokenId, price: 0.4 })
  await eventually('the price', () => page.locator('.headline .price').getAttribute('data-price'), price => Number(price) < 0.5)
  await page.getByLabel('Tell me at, ¢').fill('95') // far above the prices that the market reaches by itself
  await page.getByRole('button', { name: 'Set', exact: true }).click()
  await page.getByText('Above 95.0¢').waitFor()
  await wantAccessible(page)
  await page.reload()
  await page.getByText('Above 95.0¢').waitFor()
  await go(page, '#/watchlist')
  const notice = page.locator('.notices p')
  assert.equal(await notice.count(), 0)
  await eventually('a notice', async () => (await control('price', { tokenId, price: 0.97 }), notice.count()), n => n === 1)
  assert.match(await page.title(), /^\(1\) /)
  await wantAccessible(page)
  await notice.getByRole('button', { name: 'Dismiss' }).click()
  assert.equal(await notice.count(), 0)
  assert.doesNotMatch(await page.title(), /^\(/)
  assert.equal(await page.evaluate(() => localStorage.getItem('oddsgraph:alerts')), '[]')
})

test('the category of the list has a chip, although others have more markets', async t => {
  const { page } = await visit(t, '/live')
  const categories = Array.from({ length: 25 }, (_, i) => ({ __typename: 'Category', name: `Topic ${i}`, category: `topic-${i}`, tag: null, openMarkets: 100 - i, complete: true }))
  await page.route('**/graphql', route => route.request().postData()?.includes('query Categories') ? route.fulfill({ json: { data: { categories } } }) : route.fallback())
  await go(page, '#/?category=topic-24')
  await page.reload()
  await page.getByRole('button', { name: /^Topic 24/, pressed: true }).waitFor()
  assert.equal(await page.locator('.chips button:has(.count)').count(), 21)
})

test('the book is grouped', async t => {
  const { page } = await visit(t, '/live')
  const [path] = await paths(page)
  await go(page, path!)
  await bothSides(page, tokenOf(path!))
  const total = async () => (await book(page)).bids.reduce((sum, { size }) => sum + Number(size), 0)
  const fine = await total()
  await page.getByRole('group', { name: 'Group by' }).getByRole('button', { name: '5¢' }).click()
  await eventually('steps of 5¢', () => book(page), ({ bids, asks }) => [...bids, ...asks].every(({ price }) => Number(price) * 100 % 5 < 1e-9 || Number(price) * 100 % 5 > 5 - 1e-9))
  await eventually('all levels', total, sum => sum >= fine / 2)
})

test('grouping keeps the worse price of each step', () => {
  const levels = [{ price: '0.637', size: '1.5' }, { price: '0.631', size: '2' }, { price: '0.629', size: '4' }]
  assert.deepEqual(grouped(levels, 100, 'bids'), [{ price: '0.63', size: '3.5' }, { price: '0.62', size: '4' }])
  assert.deepEqual(grouped(levels.toReversed(), 100, 'asks'), [{ price: '0.63', size: '4' }, { price: '0.64', size: '3.5' }])
  assert.equal(grouped(levels, 0, 'bids'), levels)
})

test('the chart has ranges and candles', async t => {
  const { page } = await visit(t, '/live')
  await go(page, (await paths(page))[0]!)
  for (const [name, words] of [['1H', 'hour'], ['1D', '24 hours'], ['1M', '30 days'], ['ALL', 'year']] as const) {
    await page.getByRole('button', { name, exact: true }).click()
    await page.locator(`.canvas[aria-label*="${words} ago"]`).waitFor()
  }
  const read = page.waitForResponse(response => response.request().postData()?.includes('candles(') ?? false)
  await page.getByRole('button', { name: 'Candles' }).click()
  assert.equal((await (await read).json()).errors, undefined)
})

test('the panel of faults drops the stream, throttles and resolves a market', async t => {
  const { page, problems } = await visit(t, '/live')
  await prices(page)
  const pill = page.locator('.pill')
  await pill.getByText('Live', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Faults' }).click()
  const panel = page.getByRole('region', { name: 'Faults of the demo venue' })
  t.after(() => control('reset', {}))
  await record(page)
  await panel.getByRole('button', { name: 'Drop stream' }).click()
  await pill.getByText('Stream down').waitFor()
  // Prices are stale until the server has polled them, which may be sooner than the next look at the page.
  await eventually('a stale price', () => seen(page), all => all.includes('a stale price'))
  await wantAccessible(page)
  await panel.getByRole('button', { name: 'Repair all' }).click()
  await pill.getByText('Live', { exact: true }).waitFor()
  await panel.getByRole('button', { name: 'Restart' }).click()
  await panel.getByText('The venue has restarted.').waitFor()
  await go(page, (await paths(page))[19]!)
  await page.locator('.headline .price').waitFor()
  await panel.getByRole('button', { name: 'Resolve this market' }).click()
  await page.locator('.banner').getByText(/^Trading has ended/).waitFor()
  assert.deepEqual(problems, [])
})

test('a card has the leading outcomes of all open markets of its event, not only of those that the search has found', async t => {
  interface Market { status: string; tokens: { outcomeKind: string }[] }
  interface Found { searchEvents: { edges: { node: { title: string; markets: { nodes: Market[] } }; matches: Market[] }[] } }
  const { searchEvents: { edges } } = await ask<Found>(`query ($status: [MarketStatus!]) {
    searchEvents(filter: { status: $status }, sort: VOLUME_24H, first: 25) {
      edges { node { id title markets(first: 50) { nodes { id status tokens { id outcomeKind } } } } matches { id status tokens { id outcomeKind } } }
    }
  }`, { status: 'OPEN' })
  const bars = (markets: Market[]) => Math.min(3, markets.filter(({ status }) => status === 'OPEN')
    .reduce((sum, { tokens }) => sum + (tokens.some(({ outcomeKind }) => outcomeKind === 'YES') ? 1 : tokens.length), 0))
  const want = new Map(edges.map(({ node }) => [node.title, bars(node.markets.nodes)]))
  assert.ok(edges.some(({ node, matches }) => bars(matches) < bars(node.markets.nodes)), 'the search finds all markets of each event')
  const { page } = await visit(t, '/live#/?view=events', { viewport: { width: 1280, height: 4000 } })
  const cards = () => page.evaluate(() => [...document.querySelectorAll<HTMLElement>('.cards > li')].map(card => [card.querySelector('h2')?.innerText ?? '', card.querySelectorAll('.bar-row').length] as const))
  // The list may have changed since the answer, because other checks resolve markets.
  await eventually('all outcomes', cards, all => all.filter(([title]) => want.has(title)).length > 5 && all.every(([title, n]) => (want.get(title) ?? n) === n))
})
