// The page that a reader of docs/frontend.md has built, in a browser. TestGuide builds it and starts its dev server.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { addErrors, ask, control, endpoint, eventually, restart, visit } from './browser'

interface Position { outcome: string; token: { tokenId: string }; market: { question: string } }

interface Account { address: string; positions: { nodes: Position[] } }

/** Reads the positions that the page must show, directly from the service. */
async function positions(): Promise<Account> {
  const query = '{ viewer { id address positions(first: 10, sort: VALUE) { nodes { id outcome token { id tokenId } market { id question } } } } }'
  return (await ask<{ viewer: Account }>(query, {}, { Authorization: 'Bearer demo-50' })).viewer
}

const rows = (page: Page) => page.locator('tbody tr').evaluateAll(rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent ?? '')))

test('the portfolio is live', async t => {
  const url = process.env['GUIDE_URL']!
  const { page } = await visit(t, '/', { baseURL: url }, endpoint)
  await eventually('the page', () => rows(page), all => all.length === 10)
  await addErrors(page) // an event with errors must change the page, too
  const { address, positions: { nodes } } = await positions()
  const before = await eventually('ten positions', () => rows(page), all => all.length === 10)
  assert.deepEqual(before.map(([market, outcome]) => [market, outcome]), nodes.map(({ market, outcome }) => [market.question, outcome]))
  assert.match(await page.locator('h1').innerText(), / in 50 positions$/)

  const first = nodes[0]!
  const valueOf = (all: string[][]) => all.find(([market, outcome]) => market === first.market.question && outcome === first.outcome)?.[3]
  const value = valueOf(before)
  assert.match(value ?? '', /^[\d,]+\.\d\d$/)
  for (const price of [0.91, 0.93]) {
    const shown = valueOf(await rows(page))
    await control('price', { tokenId: first.token.tokenId, price })
    await eventually(`another value at the price ${price}`, () => rows(page), all => valueOf(all) !== undefined && valueOf(all) !== shown)
  }
  const sorted = (await rows(page)).map(([, , , value]) => Number(value!.replaceAll(',', '')))
  assert.deepEqual(sorted, sorted.toSorted((a, b) => b - a))

  await page.getByRole('button', { name: 'More', exact: true }).click()
  await eventually('another page', () => rows(page), all => all.length === 20)

  await control('trade', { address, tokenId: first.token.tokenId, side: 'SELL' })
  await eventually('no row of the closed position', () => rows(page), all => valueOf(all) === undefined && all.length >= 19)
  await eventually('49 positions', () => page.locator('h1').innerText(), text => text.endsWith(' in 49 positions'))
})

test('the light is true', async t => {
  const { page } = await visit(t, '/', { baseURL: process.env['GUIDE_URL']! }, endpoint)
  let blocked = false
  let cut = () => {}
  await page.routeWebSocket('**/graphql', socket => {
    if (blocked) return void socket.close({ code: 1012 })
    socket.connectToServer()
    cut = () => void socket.close({ code: 1012 })
  })
  await page.reload()
  const light = (text: string) => page.getByRole('status').getByText(text, { exact: true }).waitFor()
  await light('LIVE')
  blocked = true
  cut()
  await light('Connection lost')
  blocked = false
  await light('LIVE')
})

test('after a restart that takes 45 seconds, the page is live with its first attempt to connect, and never says so before', { skip: !process.env['GUIDE_RESTARTS'] }, async t => {
  const { page, problems } = await visit(t, '/', { baseURL: process.env['GUIDE_URL']! }, endpoint)
  const light = page.getByRole('status')
  await light.getByText('LIVE', { exact: true }).waitFor()
  const { positions: { nodes: [first] } } = await positions()
  await eventually('the page', () => rows(page), all => all.length === 10)
  await page.evaluate(() => {
    const said: string[] = []
    Object.assign(globalThis, { said })
    const light = document.querySelector('[role=status]')!
    new MutationObserver(() => said.push(light.textContent ?? '')).observe(light, { subtree: true, childList: true, characterData: true })
  })
  await restart()
  const back = Date.now()
  let attempts = 0
  page.on('websocket', () => { attempts++ })
  await light.getByText('LIVE', { exact: true }).waitFor()
  const live = Date.now() - back
  assert.deepEqual(await page.evaluate(() => (globalThis as unknown as { said: string[] }).said), ['Connection lost', 'LIVE'])
  assert.ok(attempts <= 1, `${attempts} attempts`)
  const before = JSON.stringify(await rows(page))
  await control('price', { tokenId: first!.token.tokenId, price: 0.87 })
  await eventually('another value', () => rows(page), all => JSON.stringify(all) !== before)
  t.diagnostic(`live after ${live} ms, with a new value after ${Date.now() - back} ms`)
  problems.splice(0, problems.length, ...problems.filter(problem => !problem.includes('net::ERR_CONNECTION_REFUSED')))
})
