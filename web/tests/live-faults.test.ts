// The live board while the services behind it fail: it shows the failure, and recovers by itself.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { book, bothSides, everyFault, go, listed, paths, prices, record, seen, tokenOf, wallet, wantSeen } from './board'
import { ask, control, eventually, frames, restart, visit } from './browser'

/** Waits until the page and the venue's stream are connected. */
const live = (page: Page) => eventually(
  'a live stream',
  () => page.locator('.pill').evaluate(pill => ({ ...(pill as HTMLElement).dataset })),
  ({ link, stream }) => link === 'open' && stream === 'LIVE',
)

/** Waits until the stream is live, at least five prices are listed, none of them is stale, and prices move again. */
async function wantRecovered(page: Page) {
  await live(page)
  const fresh = await eventually('fresh prices', () => listed(page), all => all.length >= 5 && all.every(p => p.stale === 'false'))
  await eventually('prices that move', () => listed(page), all => all.map(p => p.price).join() !== fresh.map(p => p.price).join())
}

/** Takes the venue's stream down, until control('reset', {}). */
async function drop() {
  await control('faults', { faults: [{ on: 'opens', kind: 'status', status: 503 }] })
  await control('restart', { code: 4003 })
}

test("the venue's stream drops", async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  await live(page)
  await record(page)
  await drop()
  await page.locator('[role=status][data-stream=DISCONNECTED]').waitFor()
  await eventually('a stale price', () => seen(page), all => all.includes('a stale price')) // the service soon reads fresh prices over REST
  const all = await listed(page)
  assert.deepEqual(all.map(p => p.marked), all.map(p => p.stale === 'true'))
  assert.ok(!(await seen(page)).includes('an unmarked stale price'))
  await control('reset', {})
  await wantRecovered(page)
  await wantSeen(page, 'stream DISCONNECTED', 'a stale price', 'a price that says so')
  assert.ok(!(await seen(page)).includes('link lost'), 'the socket had nothing to do with it')
})

test('the server restarts', async t => {
  const { page, problems } = await visit(t, '/live')
  await prices(page)
  await live(page)
  await record(page)
  await restart()
  await page.waitForFunction(() => (globalThis as unknown as { seen: Set<string> }).seen.has('link lost'))
  await wantRecovered(page)
  await wantSeen(page, 'link lost', 'a stale price', 'a price that says so')
  forgive(problems)
})

test('the server restarts under a market page', async t => {
  const { page, problems } = await visit(t, '/live')
  const [path] = await paths(page)
  await go(page, path!)
  await live(page)
  const before = await bothSides(page, tokenOf(path!))
  await record(page)
  await restart()
  await page.waitForFunction(() => (globalThis as unknown as { seen: Set<string> }).seen.has('link lost'))
  await live(page)
  await control('price', { tokenId: tokenOf(path!), price: 0.42 })
  await eventually('a new book', () => book(page), now => now.sequence !== before.sequence && now.bids.length > 0)
  await eventually('nothing stale', () => page.locator('[data-stale=true]').count(), n => n === 0)
  forgive(problems)
})

test('the socket dies in silence', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  let dead = false
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    socket.onMessage(message => { if (!dead) server.send(message) })
    server.onMessage(message => { if (!dead) socket.send(message) })
  })
  await page.clock.install()
  await page.reload()
  await prices(page)
  await live(page)
  await record(page)
  dead = true
  await page.clock.fastForward(5_000) // the page sends a ping
  await page.clock.fastForward(5_000) // the pong is late
  await page.waitForFunction(() => (globalThis as unknown as { seen: Set<string> }).seen.has('link lost'))
  await eventually('stale prices', () => listed(page), all => all.every(p => p.stale === 'true'))
  dead = false
  await wantRecovered(page)
})

test('the server ends a subscription', async t => {
  const { page } = await visit(t, '/live')
  let end = () => {}
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    socket.onMessage(message => {
      const { id, type, payload } = JSON.parse(String(message))
      if (type === 'subscribe' && payload.query.includes('priceChanged')) {
        end = () => {
          server.send(JSON.stringify({ id, type: 'complete' }))
          socket.send(JSON.stringify({ id, type: 'error', payload: [{ message: 'too slow', extensions: { code: 'RATE_LIMITED' } }] }))
        }
      }
      server.send(message)
    })
  })
  await page.reload()
  await prices(page)
  await live(page)
  await record(page)
  end()
  await page.getByRole('alert').getByText('too slow').waitFor()
  await wantRecovered(page)
  await wantSeen(page, 'a stale price', 'a price that says so')
  assert.equal(await page.getByRole('alert').count(), 0)
})

test('an error before the first price is shown until the price arrives', async t => {
  const { page } = await visit(t, '/live')
  const [path] = await paths(page)
  const failed = new Set<string>()
  let held: (() => void)[] | undefined = []
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    server.onMessage(message => {
      const { id, payload } = JSON.parse(String(message))
      if (!held || !payload?.data?.priceChanged) return socket.send(message)
      if (!failed.has(id)) {
        const errors = [{ message: 'no price could be read', extensions: { code: 'UPSTREAM_UNAVAILABLE' } }]
        socket.send(JSON.stringify({ id, type: 'next', payload: { data: null, errors } }))
      }
      failed.add(id)
      held.push(() => socket.send(message))
    })
  })
  await go(page, path!)
  await page.reload()
  await page.getByRole('alert').getByText('no price could be read').waitFor()
  await live(page)
  await bothSides(page, tokenOf(path!))
  assert.equal(await page.locator('.headline .price').count(), 0)
  const late = held
  held = undefined
  late.forEach(send => send())
  await page.locator('.headline .price').waitFor()
  await eventually('no alert', () => page.getByRole('alert').count(), n => n === 0)
})

test('the tape tells what is missing, and that it stands still', async t => {
  const { page } = await visit(t, '/live')
  const [path] = await paths(page)
  const tokenId = tokenOf(path!)
  let tell = (_: (event: { gap: boolean }) => void) => {}
  let cut = () => {}
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    let change: ((event: { gap: boolean }) => void) | undefined
    tell = changed => { change = changed }
    cut = () => void socket.close({ code: 1011 })
    server.onMessage(message => {
      const frame = JSON.parse(String(message))
      const event = frame.payload?.data?.tradesAdded
      if (event?.reason === 'CHANGE' && change) {
        change(event)
        change = undefined
      }
      socket.send(JSON.stringify(frame))
    })
  })
  await go(page, path!)
  await page.reload()
  await live(page)
  const tape = page.locator('.tape')
  const trades = () => tape.locator('[data-trade]').count()
  const trade = () => control('trade', { address: wallet.address, tokenId, side: 'BUY', size: 1 })
  tell(event => { event.gap = true })
  await eventually('what is missing', async () => {
    await trade()
    return tape.getByText('Some trades may be missing here.').count()
  }, n => n > 0)
  assert.equal(await tape.locator('[data-stale]').count(), 0)
  await page.routeWebSocket('**/graphql', socket => socket.close({ code: 1011 })) // the server stays unreachable
  cut()
  await tape.getByText('Stale', { exact: true }).waitFor()
  assert.ok(await trades() > 0, 'known values stay visible')
})

test('the tape sorts earlier trades below those of the stream', async t => {
  const { page } = await visit(t, '/live')
  const [path] = await paths(page)
  let send: ((update: object) => void) | undefined
  await page.routeWebSocket('**/graphql', socket => {
    socket.connectToServer().onMessage(message => {
      const { id, payload } = JSON.parse(String(message))
      if (!payload?.data?.tradesAdded) socket.send(message)
      else send = update => socket.send(JSON.stringify({ id, type: 'next', payload: { data: { tradesAdded: { __typename: 'TradesUpdate', gap: false, ...update } } } }))
    })
  })
  await go(page, path!)
  await page.reload()
  await live(page)
  await eventually('the subscription', async () => send !== undefined, ok => ok)
  const rows = () => page.locator('.tape tbody tr').evaluateAll(all => all.map(row => (row as HTMLElement).dataset.trade ?? row.className))
  const trade = (id: string, second: number) => ({ __typename: 'Trade', id, side: 'BUY', price: '0.5', size: '1', timestamp: new Date(second * 1000).toISOString() })
  const empty = () => page.getByText('No trade yet.').count()
  send!({ reason: 'INITIAL', known: false, trades: [] })
  await eventually('that earlier trades are unknown', rows, all => all.join() === 'earlier')
  assert.equal(await empty(), 0)
  send!({ reason: 'CHANGE', known: false, trades: [trade('3', 3)] })
  await eventually('a trade of the stream', rows, all => all.join() === '3,earlier')
  send!({ reason: 'RESYNC', known: true, trades: [trade('1', 1), trade('2', 2)] })
  await eventually('earlier trades', rows, all => all.join() === '3,2,1')
  send!({ reason: 'INITIAL', known: true, trades: [] })
  await eventually('that there are no trades', empty, n => n === 1)
})

test("a tape stands still with the venue's stream", async t => {
  t.after(() => control('reset', {})) // without this, the faults remain if this test fails
  const { page } = await visit(t, '/live')
  const [path] = await paths(page)
  await go(page, path!)
  await live(page)
  const tape = page.locator('.tape')
  await tape.getByRole('table').waitFor()
  const stale = tape.getByText('Stale', { exact: true })
  assert.equal(await stale.count(), 0)
  await drop()
  await stale.waitFor()
  assert.equal(await page.locator('.pill[role=status]').getAttribute('data-link'), 'open')
  await control('reset', {})
  await live(page)
  await stale.waitFor({ state: 'detached' })
})

test('figures of a portfolio are marked while they are stale', async t => {
  const { page } = await visit(t, '/live', { viewport: { width: 1280, height: 4000 } }) // tall enough to show all rows
  let position: string | undefined
  let cut = () => {}
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    cut = () => void socket.close({ code: 1011 })
    server.onMessage(message => {
      const frame = JSON.parse(String(message))
      for (const { id, valuation, market } of frame.payload?.data?.portfolioChanged?.changed ?? []) {
        if (market.status === 'OPEN') position ??= id
        if (position === id) valuation.freshness.stale = true
      }
      socket.send(JSON.stringify(frame))
    })
  })
  await go(page, '#/portfolio')
  await page.reload()
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()

  /**
   * Returns the number of open positions, and the ids of those that are marked as stale. A stale row must have the same three cells
   * marked, and its text must say that it is stale. All other rows must have neither.
   */
  const marked = async () => {
    const rows = await page.evaluate(() => [...document.querySelectorAll<HTMLTableRowElement>('.positions tr[data-position]:not(.settled)')].map(row => ({
      id: row.dataset.position, stale: row.dataset.stale === 'true', said: / stale$/.test(row.cells[4]!.textContent),
      cells: [...row.cells].map(cell => getComputedStyle(cell).textDecorationStyle === 'dotted'),
    })))
    for (const { stale, cells, said } of rows) assert.deepEqual({ cells, said }, { cells: [false, false, false, stale, stale, stale], said: stale })
    return { of: rows.length, ids: rows.filter(({ stale }) => stale).map(({ id }) => id) }
  }
  const sums = () => page.evaluate(() => [...document.querySelectorAll('.sums dd')].map(dd => getComputedStyle(dd).textDecorationStyle).join())
  const { of } = await eventually('the one that is stale', marked, ({ of, ids }) => of > 10 && ids.join() === position)
  assert.equal(await sums(), 'solid,solid,solid,solid')

  await page.routeWebSocket('**/graphql', socket => socket.close({ code: 1011 })) // the server stays unreachable
  cut()
  await eventually('all of them', marked, ({ ids }) => ids.length === of)
  assert.equal(await sums(), 'dotted,dotted,dotted,dotted')
})

test('a book that has missed a change is stale until it is whole again', async t => {
  const { page } = await visit(t, '/live')
  const path = (await paths(page)).at(-1)!
  const tokenId = tokenOf(path)
  let missed = true
  let held: (() => void)[] | undefined
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    socket.onMessage(message => {
      const { type, payload } = JSON.parse(String(message))
      if (held && type === 'subscribe' && payload.query.includes('orderbookChanged')) held.push(() => server.send(message))
      else server.send(message)
    })
    server.onMessage(message => {
      if (!missed && JSON.parse(String(message)).payload?.data?.orderbookChanged?.kind === 'DELTA') missed = true
      else socket.send(message)
    })
  })
  await go(page, path)
  await page.reload()
  await live(page)
  const fresh = page.locator('.book [data-stale=false]')
  await fresh.waitFor()
  await bothSides(page, tokenId)
  held = []
  missed = false

  let cents = 30
  const move = () => control('price', { tokenId, price: (cents = cents === 30 ? 34 : 30) / 100 })
  await eventually('a stale book', async () => {
    await move()
    return page.locator('.book [data-stale=true]').count()
  }, n => n > 0)
  assert.ok(missed)
  assert.ok((await book(page)).bids.length > 0, 'known values stay visible')
  await eventually('another subscription', async () => held!.length, n => n === 1)
  await frames(page, 10)
  assert.equal(await page.locator('.book [data-stale=true]').count(), 1, 'nothing has come yet')

  held.splice(0).forEach(send => send())
  await fresh.waitFor()
  interface Answer { token: { orderbook: { sequence: string; bids: { price: string; size: string }[] } } }
  const query = 'query ($id: String!) { token(tokenId: $id) { orderbook(depth: 10) { sequence bids { price size } } } }'
  const { shown, asked } = await eventually('the same sequence', async () => ({
    shown: await book(page), asked: (await ask<Answer>(query, { id: tokenId })).token.orderbook,
  }), ({ shown, asked }) => shown.sequence === asked.sequence)
  assert.deepEqual(shown.bids.map(({ price, size }) => ({ price, size })), asked.bids)
})

test('a query that has failed is repeated by itself', async t => {
  const { page, problems } = await visit(t, '/live')
  const [path] = await paths(page)
  let asked = 0
  await page.route('**/graphql', route => {
    if (!route.request().postData()?.includes('query History')) return route.fallback()
    asked++
    const extensions = { code: 'RATE_LIMITED', retryAfterMs: 60_000 }
    return asked === 1 ? route.fulfill({ json: { errors: [{ message: 'come again', extensions }] } })
      : asked === 2 ? route.abort()
      : route.fallback()
  })
  let unanswered = 0
  const kind = (payload: string | Buffer) => JSON.parse(String(payload)).type as string
  page.on('websocket', socket => {
    socket.on('framesent', ({ payload }) => { if (kind(payload) === 'ping') unanswered++ })
    socket.on('framereceived', ({ payload }) => { if (kind(payload) === 'pong') unanswered-- })
  })
  // The page closes the socket if no pong comes within 5 s of its clock, so the clock must not overtake a pong.
  const pong = () => eventually('a pong', async () => unanswered, n => n === 0)
  await page.clock.install()
  await page.reload()
  await live(page)
  await record(page)
  await go(page, path!)
  const alert = (text: string) => page.getByRole('alert').getByText(text).waitFor()
  await alert('come again')
  await page.clock.fastForward(10_000)
  await frames(page, 10)
  assert.equal(asked, 1, 'not before the delay that the server names')
  await pong()
  await page.clock.fastForward(50_000)
  await alert('The server cannot be reached')
  await frames(page, 10)
  await pong()
  await page.clock.fastForward(5_000)
  await page.locator('.canvas[aria-label^=From]').waitFor()
  assert.equal(asked, 3)
  assert.equal(await page.getByRole('alert').count(), 0)
  assert.ok(!(await seen(page)).includes('link lost'), 'the socket had nothing to do with it')
  forgive(problems)
})

test('every fault of the panel', async t => everyFault((await visit(t, '/live')).page))

/** Removes the problems that browsers report while a server is unreachable. */
function forgive(problems: string[]) {
  const others = problems.filter(problem => !/WebSocket connection to .* failed|net::ERR_(FAILED|CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE)/.test(problem))
  problems.splice(0, problems.length, ...others)
}
