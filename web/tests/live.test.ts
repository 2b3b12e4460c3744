// The live board: what it shows, and with which requests.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { book, bothSides, go, listed, paths, prices, tokenOf, wallet } from './board'
import { ask, control, desktop, eventually, frames, phone, screenshot, visit, wantAccessible } from './browser'

test('prices are listed and move', async t => {
  const { page } = await visit(t, '/live')
  const first = await prices(page)
  assert.deepEqual(first.filter(({ stale }) => stale !== 'false'), [])
  await eventually('other prices', () => listed(page), all => all.map(p => p.price).join() !== first.map(p => p.price).join())
})

test('rows are observed once', async t => {
  const { page } = await visit(t, '/live')
  await page.addInitScript(() => {
    const { observe } = IntersectionObserver.prototype
    Object.assign(globalThis, { observed: 0 })
    IntersectionObserver.prototype.observe = function (target) {
      (globalThis as unknown as { observed: number }).observed++
      observe.call(this, target)
    }
  })
  await page.reload()
  const first = await prices(page)
  const observed = () => page.evaluate(() => (globalThis as unknown as { observed: number }).observed)
  const before = await observed()
  assert.ok(before > 0)
  await frames(page, 60)
  await eventually('other prices', () => listed(page), all => all.map(p => p.price).join() !== first.map(p => p.price).join())
  assert.equal(await observed() - before, 0)
})

test('one subscription follows what can be seen, and each row reads its last day once', async t => {
  const { page } = await visit(t, '/live')
  const followed: string[][] = []
  page.on('websocket', socket => {
    followed.length = 0 // drop the subscriptions of the page before its reload
    socket.on('framesent', ({ payload }) => {
      const { type, payload: operation } = JSON.parse(String(payload))
      if (type === 'subscribe' && operation.query.includes('priceChanged')) followed.push(operation.variables.tokenIds)
    })
  })
  await page.reload()
  const days: string[] = []
  page.on('request', request => {
    const { operationName, variables } = JSON.parse(request.postData() ?? '{}')
    if (operationName === 'LastDay') days.push(...variables.tokenIds)
  })
  await prices(page)
  assert.equal(followed.length, 1)
  assert.ok(followed[0]!.length >= 5)
  await page.locator('.markets tbody tr').last().scrollIntoViewIfNeeded()
  await eventually('others are followed', async () => followed.length, n => n > 1)
  const last = await eventually('its price', () => page.locator('.markets tbody tr').last().getAttribute('data-token'), Boolean)
  assert.ok(followed.at(-1)!.includes(last!) && !followed[0]!.includes(last!))
  assert.ok(!followed[0]!.every(tokenId => followed.at(-1)!.includes(tokenId)), 'rows out of sight are not followed')
  const row = page.locator('.markets tbody tr')
  await row.last().locator('.change').waitFor()
  await row.first().scrollIntoViewIfNeeded()
  await row.first().locator('.change').waitFor()
  assert.ok(days.length >= 10)
  assert.equal(new Set(days).size, days.length)

  await page.locator('.markets tbody a').last().click()
  await page.locator('.canvas[aria-label^=From]').waitFor()
  await eventually('the price on its page', () => page.locator('.headline .price').count(), n => n === 1)
})

test('a row shows the change and the line that a query gives', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  const tokenId = (await page.locator('.markets tbody tr[data-token]').first().getAttribute('data-token'))!
  const row = page.locator(`.markets tbody tr[data-token="${tokenId}"]`)
  await row.locator('.change').waitFor()
  interface Answer { token: { price: { price: string }; change24h: string; sparkline: string[] } }
  const { shown, asked } = await eventually('the same price and change', async () => {
    const shown = await row.evaluate(element => ({
      price: element.querySelector<HTMLElement>('.price')!.dataset.price, change: element.querySelector<HTMLElement>('.change')!.innerText,
      steps: element.querySelector('.sparkline path')!.getAttribute('d')!.split('V').length,
    }))
    const asked = (await ask<Answer>('query ($id: String!) { token(tokenId: $id) { price { price } change24h sparkline(points: 48) } }', { id: tokenId })).token
    const samePrice = shown.price === asked.price.price
    const sameChange = Number(/[\d.]+/.exec(shown.change)) === Number(Math.abs(100 * Number(asked.change24h)).toFixed(1))
    if (samePrice && !sameChange) { // the page may have read the price of 24 hours ago before a new point of the history
      await page.reload()
      await row.locator('.change').waitFor()
    }
    return { shown, asked, same: samePrice && sameChange }
  }, ({ same }) => same)
  assert.ok(shown.steps >= asked.sparkline.length - 1)
})

test('a category narrows the list to its markets', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  const chip = page.locator('.chips button:has(.count)').first()
  await chip.waitFor()
  const count = Number((await chip.locator('.count').innerText()).replace(/\D/g, ''))
  await chip.click()
  await page.getByRole('status').getByText(`${count.toLocaleString('en')} open market`).waitFor()
  assert.match(page.url(), /category=/)
})

test('live figures wait for no query', async t => {
  const { page } = await visit(t, '/live')
  const [path] = await paths(page)
  await page.route('**/graphql', () => {}) // no query is answered
  await go(page, path!)
  await page.reload()
  await page.locator('.headline .price').waitFor()
  await bothSides(page, tokenOf(path!))
  assert.equal(await page.locator('.canvas[aria-label^=From]').count(), 0)
})

test('a price and a book are those that a query gives at the same sequence', async t => {
  const { page } = await visit(t, '/live')
  const path = (await paths(page)).at(-1)
  await go(page, path!)
  const tokenId = tokenOf(path!)
  interface Answer {
    token: {
      price: { price: string; freshness: { asOf: string } }
      orderbook: { sequence: string; bids: object[]; asks: object[]; spread: string }
    }
  }
  const query = `query ($id: String!) { token(tokenId: $id) {
    price { price freshness { asOf } } orderbook(depth: 10) { sequence spread bids { price size } asks { price size } } } }`
  const seen = new Set<string>()
  // The prices are far apart, because the market also moves on its own. A price that the market already has would change nothing.
  for (const price of [0.31, 0.45, 0.32, 0.46]) {
    await control('price', { tokenId, price })
    // The page and the server's response may change between the two reads. Read both again until they have the same state.
    const { shown, headline, spread, asked } = await eventually('the same sequence', async () => ({
      shown: await book(page),
      headline: await page.locator('.headline .price').evaluate(({ dataset: { price, asOf }, innerText }: HTMLElement) => ({ price, asOf, text: innerText })),
      spread: await page.locator('.spread strong').getAttribute('data-spread'),
      asked: (await ask<Answer>(query, { id: tokenId })).token,
    }), ({ shown, headline, asked }) => shown.sequence === asked.orderbook.sequence && !seen.has(shown.sequence) &&
      headline.asOf === asked.price.freshness.asOf)
    seen.add(shown.sequence!)
    const exact = (levels: { price: string | undefined; size: string | undefined }[]) => levels.map(({ price, size }) => ({ price, size }))
    assert.deepEqual(exact(shown.bids), asked.orderbook.bids)
    assert.deepEqual(exact(shown.asks), asked.orderbook.asks)
    assert.equal(spread, asked.orderbook.spread)
    for (const { price, written } of [...shown.bids, ...shown.asks]) assert.equal((Number(written) / 100).toFixed(4), Number(price).toFixed(4))
    assert.equal(headline.price, asked.price.price)
    assert.equal((Number.parseFloat(headline.text) / 100).toFixed(4), Number(headline.price).toFixed(4))
  }
})

test('the chart has a point for every ten minutes, and the live price moves the newest', async t => {
  const { page } = await visit(t, '/live', { viewport: phone }) // the whole page must also fit on a phone
  const path = (await paths(page)).at(-1)!
  const tokenId = tokenOf(path)
  // The line of the chart is the longest line that the page draws in one stroke.
  await page.addInitScript(() => {
    const { prototype } = CanvasRenderingContext2D
    const { beginPath, moveTo, lineTo } = prototype
    const stroke: () => void = prototype.stroke
    let heights: number[] = []
    let strokes = 0
    prototype.beginPath = function () { heights = []; strokes = 0; beginPath.call(this) }
    prototype.moveTo = function (x, y) { heights.push(y); strokes++; moveTo.call(this, x, y) }
    prototype.lineTo = function (x, y) { heights.push(y); lineTo.call(this, x, y) }
    prototype.stroke = function () {
      if (strokes === 1 && heights.length > 20) Object.assign(globalThis, { line: heights })
      stroke.call(this)
    }
  })
  const minutes = 60_000
  const start = Math.floor(Date.now() / (10 * minutes)) * 10 * minutes - 7 * 24 * 60 * minutes
  const point = (after: number, price: string) => ({ __typename: 'PricePoint', timestamp: new Date(start + after * minutes).toISOString(), price })
  const points = [point(0, '0.2'), point(60, '0.7'), point(61, '0.6')] // steps of 10 minutes; the last two points are in one step
  const token = { __typename: 'Token', id: 'token', history: { __typename: 'PriceHistory', points } }
  await page.route('**/graphql', route =>
    route.request().postData()?.includes('query History') ? route.fulfill({ json: { data: { token } } }) : route.fallback(),
  )
  await go(page, path)
  await page.reload()
  let first = Infinity // the step of the first live price; later steps can begin during the test
  for (const price of [0.3, 0.5, 0.4]) {
    await eventually(`a line that ends at ${price}`, async () => {
      await control('price', { tokenId, price })
      const { line, asOf, live } = await page.evaluate(() => {
        const shown = document.querySelector<HTMLElement>('.headline .price')?.dataset
        return { line: (globalThis as unknown as { line?: number[] }).line ?? [], asOf: shown?.asOf, live: Number(shown?.price) }
      })
      // Convert heights to prices, with the first two known prices.
      const [low, high] = [line[0] ?? 0, line[6] ?? 0]
      const drawn = line.map(y => Number((0.2 + 0.4 * (y - low) / (high - low)).toFixed(3)))
      const newest = asOf ? Math.floor((Date.parse(asOf) - start) / (10 * minutes)) : 0
      if (newest > 6) first = Math.min(first, newest)
      const wanted = newest > 6 ? [...Array(6).fill(0.2), ...Array(first - 6).fill(0.6)] : []
      return { drawn, wanted, newest, live }
    }, ({ drawn, wanted, newest, live }) => Math.abs(live - price) < 0.03 && drawn.length === newest + 1 && drawn.at(-1) === live
      && wanted.length > 0 && drawn.slice(0, wanted.length).join() === wanted.join())
  }
})

test('a portfolio is worth what a query says, and its credentials are kept nowhere', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  await page.getByLabel('Address').fill(wallet.address)
  await page.getByLabel('API key').fill('demo-50')
  await page.getByLabel('Secret').fill('demo')
  await page.getByLabel('Passphrase').fill('demo')
  await page.getByRole('button', { name: 'Open', exact: true }).click()
  interface Answer { user: { portfolio: Record<string, string>; positions: { totalCount: number } } }
  const query = `query ($a: Address!) { user(address: $a) { portfolio { totalValue positionsValue unrealizedPnl } positions(first: 1) { totalCount } } }`
  const money = (text: string | undefined) => Number(text).toFixed(2)
  const amount = (text: string) => text.replace('−', '-').replace(/[^\d.-]/g, '')
  const sum = async (name: string) => amount(await page.locator(`[data-sum=${name}]`).innerText())
  // The sums change about once a second, so the page may show the sums of an earlier answer.
  const answers = new Map<string, number>()
  const shown = await eventually('the sums of an answer', async () => {
    const { portfolio: p, positions } = (await ask<Answer>(query, { a: wallet.address }, wallet.headers)).user
    answers.set([p.totalValue, p.positionsValue, p.unrealizedPnl].map(money).join(), positions.totalCount)
    const texts = await page.evaluate(() => ['total', 'positions', 'pnl'].map(name => document.querySelector<HTMLElement>(`[data-sum=${name}]`)?.innerText ?? ''))
    return texts.map(amount).join()
  }, sums => answers.has(sums))
  assert.equal(Number(await page.locator('.positions').getAttribute('aria-rowcount')) - 1, answers.get(shown))

  const before = await sum('positions')
  await eventually('another value', () => sum('positions'), now => now !== before)

  const kept = await page.evaluate(async () => JSON.stringify([
    { ...localStorage }, { ...sessionStorage }, document.cookie, location.href, await indexedDB.databases(), await caches.keys(),
  ]))
  assert.doesNotMatch(kept, /demo|eyJ/)
  await page.reload()
  await page.getByRole('heading', { name: 'Your wallet' }).waitFor()
})

test('wrong credentials lead back to the form as it was filled in', async t => {
  const { page } = await visit(t, '/live#/portfolio')
  await page.getByLabel('Address').fill(wallet.address)
  for (const field of ['API key', 'Secret', 'Passphrase']) await page.getByLabel(field).fill('wrong')
  await page.getByRole('button', { name: 'Open', exact: true }).click()
  await page.getByRole('alert').getByText(/key, the secret or the passphrase is wrong/).waitFor()
  assert.equal(await page.getByLabel('Address').inputValue(), wallet.address)
  for (const field of ['API key', 'Secret', 'Passphrase']) {
    assert.equal(await page.getByLabel(field).inputValue(), 'wrong')
    assert.equal(await page.getByLabel(field).getAttribute('aria-invalid'), 'true')
  }
  assert.equal(await page.evaluate(() => (document.activeElement as HTMLInputElement).name), 'apiKey')
  await wantAccessible(page)
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  await eventually('positions', () => page.locator('.positions tbody tr').count(), n => n > 10)
  await eventually('the focus on the heading', () => page.evaluate(() => document.activeElement?.tagName), tag => tag === 'H1')
})

test('credentials that were refused are sent once', async t => {
  const { page } = await visit(t, '/live')
  let refused = 0
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    socket.onMessage(message => {
      const { type, payload } = JSON.parse(String(message))
      if (type !== 'connection_init' || !payload['X-Venue-Credentials']) return server.send(message)
      refused++
      void socket.close({ code: 4403, reason: 'Forbidden' })
    })
  })
  await page.clock.install()
  await page.reload()
  await go(page, '#/portfolio')
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  await page.getByRole('alert').getByText('refused these credentials').waitFor()
  for (let i = 0; i < 3; i++) {
    await page.clock.fastForward(4_000) // longer than the wait before an ended subscription is repeated
    await frames(page, 10)
  }
  assert.equal(refused, 1)
})

test('of a market that nobody knows there is nothing but that', async t => {
  const { page } = await visit(t, '/live#/market/nothing/nothing')
  const alerts = page.getByRole('alert').getByText(/^the venue does not know/)
  await alerts.first().waitFor() // the subscriptions may fail before the query for the market
  await eventually('nothing but the alert', async () => [await alerts.count(), await page.locator('.panel, .headline').count()], ([alerts, panels]) => alerts === 1 && panels === 0)
})

test('a search narrows the list, and there is more of it', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  const rows = () => page.locator('.markets tbody tr').count()
  const few = await rows()
  await page.getByRole('button', { name: 'More markets' }).click()
  await eventually('more rows', rows, n => n > few)
  const focused = () => page.evaluate(() => [...document.querySelectorAll('.markets tbody a')].indexOf(document.activeElement!))
  await eventually('the focus on the first new row', focused, row => row === few)
  const question = await page.locator('.markets tbody a').nth(3).innerText()
  await page.getByRole('searchbox').fill(question)
  await eventually('the market first', () => page.locator('.markets tbody a').allInnerTexts(), all => all[0] === question && all.length < 20)
  await page.getByRole('searchbox').fill('nothing is called so')
  await page.getByRole('status').getByText('No open market fits.').waitFor()
})

test('a list whose first page is empty has further pages', async t => {
  const { page } = await visit(t, '/live')
  await page.route('**/graphql', route => {
    const { operationName, variables, ...rest } = route.request().postDataJSON() ?? {}
    if (operationName !== 'SearchMarkets') return route.fallback()
    if (variables.after) return route.fallback({ postData: { ...rest, operationName, variables: { ...variables, after: null } } })
    const pageInfo = { __typename: 'PageInfo', hasNextPage: true, endCursor: 'the beginning' }
    return route.fulfill({ json: { data: { searchMarkets: { __typename: 'MarketConnection', nodes: [], pageInfo, totalCount: null } } } })
  })
  await page.reload()
  const more = page.getByRole('button', { name: 'More markets' })
  await more.waitFor()
  assert.equal(await page.locator('.markets .waiting').count(), 0)
  await more.click()
  await prices(page)
  const focused = () => page.evaluate(() => [...document.querySelectorAll('.markets tbody a')].indexOf(document.activeElement!))
  await eventually('the focus on the first row', focused, row => row === 0)
})

test('the winner of a resolved market may be unknown', async t => {
  const { page } = await visit(t, '/live')
  const [path] = await paths(page)
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    server.onMessage(message => {
      const frame = JSON.parse(String(message))
      const market = frame.payload?.data?.marketChanged?.market
      if (market) Object.assign(market, { status: 'RESOLVED', resolution: { winningOutcome: null } })
      socket.send(JSON.stringify(frame))
    })
  })
  await go(page, path!)
  await page.reload()
  await page.locator('.banner').getByText('The winner is not known.').waitFor()
})

test('the keyboard is enough', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  const focused = () => page.evaluate(() => document.activeElement?.textContent)
  await page.keyboard.press('Tab')
  assert.equal(await focused(), 'Skip to the content')
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'MAIN')
  for (const [key, element] of [['Tab', 'INPUT'], ['Tab', 'SELECT'], ['Tab', 'BUTTON'], ['j', 'A']] as const) {
    await page.keyboard.press(key)
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), element)
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle), 'none')
  }
  const question = await focused()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: question! }).waitFor()
  assert.equal(await page.title(), `${question} · oddsgraph`)
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'H1')
})

for (const [device, viewport] of Object.entries({ desktop, phone })) {
  for (const colorScheme of ['dark', 'light'] as const) {
    test(`everybody can use it: ${device}, ${colorScheme}`, async t => {
      const { page } = await visit(t, '/live', { viewport, colorScheme })
      const look = async (name: string) => {
        await wantAccessible(page)
        assert.ok(await fits(page), `${name} is wider than the screen`)
        if (colorScheme === 'dark') await screenshot(page, `${name}${device === 'phone' ? '-phone' : ''}`)
      }
      const path = (await paths(page))[2]
      // The sparklines need the prices of some minutes, so move the market on.
      await eventually('sparklines', async () => {
        await control('step', { steps: 10 })
        return page.locator('.sparkline path').evaluateAll(lines => lines.map(line => line.getAttribute('d')!.split('V').length))
      }, steps => steps.filter(n => n > 3).length >= 3)
      await look('board-markets')
      await go(page, path!)
      await page.locator('.canvas[aria-label^=From]').waitFor()
      await eventually('a book', () => book(page), ({ bids, asks }) => bids.length + asks.length > 0) // a price set here would be a spike in the picture
      await look('board-market')
      await page.getByRole('link', { name: 'Portfolio' }).click()
      await page.getByRole('button', { name: 'Open the demo wallet' }).waitFor()
      await wantAccessible(page)
      await page.getByRole('button', { name: 'Open the demo wallet' }).click()
      await eventually('positions', () => page.locator('.positions tbody tr').count(), n => n > 10)
      await look('board-portfolio')
    })
  }
}

/** Whether a page can be read without scrolling sideways. */
const fits = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)
