// Every state of the board, at each width and in both colour schemes. The board is loaded once for each state. Each picture is saved
// as a screenshot and checked by axe.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { go, paths, prices, tokenOf, wallet } from './board'
import { control, eventually, screenshot, visit, wantAccessible } from './browser'

/** Replaces the server's responses about its status, and opens the board. */
async function pretend(page: Page, status: object) {
  await page.route('**/graphql', async route => {
    if (!route.request().postData()?.includes('upstreamReachable')) return route.fallback()
    await route.fulfill({ json: { data: { serviceStatus: { __typename: 'ServiceStatus', demo: true, currency: 'USD', upstreamReachable: true, throttledUntil: null, ...status } } } })
  })
  await page.goto('/live')
}

/**
 * Changes the server's messages about the state of the venue's stream, and opens the board. The values of a portfolio become stale.
 * If lastMessageAt is not null, prices become stale, too.
 */
async function pretendStream(page: Page, status: { state: string; lastMessageAt?: null }) {
  await page.routeWebSocket('**/graphql', socket => {
    const server = socket.connectToServer()
    server.onMessage(message => {
      const frame = JSON.parse(String(message))
      const said = frame.payload?.data?.streamStatusChanged
      if (said) Object.assign(said, status)
      const price = frame.payload?.data?.priceChanged?.price
      if (price && status.lastMessageAt !== null) price.freshness.stale = true
      const portfolio = frame.payload?.data?.portfolioChanged
      for (const value of portfolio ? [portfolio.summary, ...portfolio.changed.flatMap((position: { valuation: object | null }) => position.valuation ?? [])] : []) value.freshness.stale = true
      socket.send(JSON.stringify(frame))
    })
  })
  await page.goto('/live')
}

/** The states by name. Each function takes an empty page, opens the board and brings it into the state. */
const states: Record<string, (page: Page) => Promise<unknown>> = {
  async loading(page) {
    await page.route('**/graphql', () => {})
    await page.goto('/live')
    await page.locator('.markets .waiting').first().waitFor()
  },
  async empty(page) {
    await page.goto('/live')
    await page.getByRole('searchbox').fill('nothing is called so')
    await page.getByRole('heading', { name: 'No open market fits' }).waitFor()
  },
  async error(page) {
    await page.route('**/graphql', route => route.request().postData()?.includes('query SearchMarkets')
      ? route.fulfill({ json: { errors: [{ message: 'the venue does not answer', extensions: { code: 'UPSTREAM_UNAVAILABLE', retryAfterMs: 60_000 } }] } })
      : route.fallback())
    await page.goto('/live')
    await page.getByRole('alert').waitFor()
  },
  async stale(page) {
    await pretendStream(page, { state: 'DISCONNECTED' })
    await page.locator('.pill', { hasText: 'Stream down' }).waitFor()
    await page.locator('.price.stale').first().waitFor()
  },
  async outage(page) {
    await pretend(page, { upstreamReachable: false })
    await page.locator('.pill', { hasText: 'does not answer' }).waitFor()
    await prices(page)
  },
  async restarting(page) {
    let cut = () => {}
    await page.routeWebSocket('**/graphql', socket => {
      socket.connectToServer()
      cut = () => void socket.close({ code: 1011 })
    })
    await page.goto('/live')
    await prices(page)
    await page.routeWebSocket('**/graphql', socket => socket.close({ code: 1011 }))
    cut()
    await page.locator('.pill', { hasText: 'Connection lost' }).waitFor()
  },
  async ended(page) {
    await page.goto('/live')
    const path = (await paths(page)).at(-1)!
    await control('market', { marketId: decodeURIComponent(path.split('/')[2]!), winningTokenId: tokenOf(path) })
    await go(page, path)
    await page.locator('.banner').waitFor()
    await page.locator('.canvas:not([aria-label^="The history"])').waitFor()
  },
  async 'no-stream'(page) {
    await pretendStream(page, { state: 'DISCONNECTED', lastMessageAt: null })
    await page.locator('.pill', { hasText: 'Polling' }).waitFor()
    await prices(page)
  },
  async 'wrong-credentials'(page) {
    await page.goto('/live#/portfolio')
    await page.getByLabel('Address').fill(wallet.address)
    for (const field of ['API key', 'Secret', 'Passphrase']) await page.getByLabel(field).fill('wrong')
    await page.getByRole('button', { name: 'Open', exact: true }).click()
    await page.getByRole('alert').waitFor()
  },
  async 'portfolio-outage'(page) {
    await pretendStream(page, { state: 'DISCONNECTED' })
    await go(page, '#/portfolio')
    await page.getByRole('button', { name: 'Open the demo wallet' }).click()
    await page.locator('.positions td.stale[data-value]').first().waitFor()
  },
  async throttled(page) {
    await pretend(page, { throttledUntil: new Date(Date.now() + 600_000).toISOString() })
    await page.locator('.pill', { hasText: 'Throttled' }).waitFor()
    await prices(page)
  },
}

const sizes = [[390, 844], [1280, 800], [1440, 900]] as const
const schemes = ['dark', 'light'] as const

for (const [state, reach] of Object.entries(states)) {
  test(`${state} can be read at each width and in both colour schemes`, async t => {
    const { page } = await visit(t, 'about:blank')
    await reach(page)
    for (const [width, height] of sizes) {
      await page.setViewportSize({ width, height })
      for (const colorScheme of schemes) {
        await page.emulateMedia({ colorScheme })
        await eventually('a page that fits', () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth), more => more <= 0)
        await screenshot(page, `state-${state}-${width}-${colorScheme}`)
        if (width !== 1280) await wantAccessible(page) // 1440 has the same layout as 1280
      }
    }
  })
}

test('no state is missing', () => assert.ok(Object.keys(states).length >= 11))
