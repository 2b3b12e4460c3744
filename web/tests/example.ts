// The apps of examples/ in a browser: search, a live book and a live portfolio. Some checks make the services behind the apps fail.
// The server of each app serves its build and the GraphQL service on one origin.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { addErrors, ask, control, endpoint, eventually, restart, visit, type Visit } from './browser'

/** Opens an app of examples/, which must be built, in a browser profile of its own. */
async function open(t: TestContext, name: string): Promise<Visit> {
  const directory = fileURLToPath(new URL(`../../../examples/${name}/`, import.meta.url)) // from tests/dist
  const server = spawn(process.execPath, ['node_modules/vite/bin/vite.js', 'preview', '--host', '127.0.0.1', '--port', '0'], {
    cwd: directory, env: { ...process.env, ODDSGRAPH: new URL(endpoint).origin, NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'],
  })
  try {
    let output = ''
    const url = await new Promise<string>((resolve, reject) => {
      for (const stream of [server.stdout, server.stderr]) {
        stream.on('data', chunk => {
          output += chunk
          const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output)
          if (found) resolve(found[0])
        })
      }
      server.on('exit', code => reject(new Error(`vite preview ended with ${code}: ${output}`)))
    })
    return await visit(t, '/', { baseURL: url })
  } finally {
    t.after(() => server.kill()) // after the function with which visit closes the page, because an open page would log lost connections
  }
}

const rows = (page: Page) => page.locator('[data-id]').evaluateAll(rows =>
  rows.map(row => ({ id: row.getAttribute('data-id')!, value: row.querySelector('[data-value]')!.getAttribute('data-value')! })))

interface Position { id: string; market: { status: string }; token: { tokenId: string } }

interface Account { address: string; positions: { nodes: Position[]; totalCount: number } }

/** Reads the account that the apps show, with the positions that they show first. */
async function account(): Promise<Account> {
  const query = '{ viewer { id address positions(first: 10, sort: VALUE) { nodes { id market { id status } token { id tokenId } } totalCount } } }'
  return (await ask<{ viewer: Account }>(query, {}, { Authorization: 'Bearer demo-50' })).viewer
}

/** Closes the open position with the highest value. Returns its id, and the number of positions before. */
async function closePosition() {
  const { address, positions: { nodes, totalCount } } = await account()
  const { id, token } = nodes.find(({ market }) => market.status === 'OPEN')! // other positions cannot be sold
  await control('trade', { address, tokenId: token.tokenId, side: 'SELL' })
  return { id, totalCount }
}

const sequence = (page: Page) => page.locator('[data-sequence]').getAttribute('data-sequence')

/**
 * Returns a function that returns the token whose book the page shows. It reads the token from the messages that the page sends
 * over its socket.
 */
function followed(page: Page): () => string {
  let tokenId = ''
  page.on('websocket', socket => socket.on('framesent', ({ payload }) => {
    const { type, payload: operation } = JSON.parse(String(payload))
    if (type === 'subscribe' && operation.query.includes('orderbookChanged')) tokenId = operation.variables.tokenId
  }))
  return () => tokenId
}

/** Moves a token's price until look() returns a value that differs from the parameter before. */
async function moved<T>(what: string, tokenId: string, before: T, look: () => Promise<T>): Promise<void> {
  let price = 0.4
  await eventually(what, async () => {
    price = price === 0.4 ? 0.42 : 0.4
    await control('price', { tokenId, price })
    return look()
  }, now => now !== before)
}

/** Adds the checks of an app. */
export function checkApp(name: string) {
  test('search and a live book', async t => {
    const { page } = await open(t, name)
    const token = followed(page)
    await page.getByRole('searchbox').fill('the')
    const market = page.getByRole('listitem').getByRole('button').first()
    await market.click()
    const first = await eventually('a book', () => sequence(page), Boolean)
    assert.ok(await page.getByRole('table', { name: 'Bids' }).getByRole('row').count() > 0)
    await moved('a change', token(), first, () => sequence(page))
  })

  test('a portfolio that changes', async t => {
    const { page } = await open(t, name)
    const before = await eventually('positions', () => rows(page), all => all.length === 10)
    await eventually('other values', () => rows(page), all => all.map(row => row.value).join() !== before.map(row => row.value).join())
    await eventually('sorted values', () => rows(page), all => all.every(({ value }, i) => i === 0 || Number(value) <= Number(all[i - 1]!.value)))
    await page.getByRole('button', { name: 'More', exact: true }).click()
    const more = await eventually('another page', () => rows(page), all => all.length > 10)
    assert.equal(new Set(more.map(({ id }) => id)).size, more.length)
  })

  test('events with errors change the page, and events without data end nothing', async t => {
    const { page } = await open(t, name)
    await addErrors(page)
    const prices = () => page.getByRole('listitem').allInnerTexts()
    const first = await eventually('prices', prices, all => all.length > 0)
    await eventually('other prices', prices, all => all.join() !== first.join())
    await page.getByRole('listitem').getByRole('button').first().click()
    await eventually('a book', () => sequence(page), Boolean)
    const before = await eventually('positions', () => rows(page), all => all.length === 10)
    await eventually('other values', () => rows(page), all => all.map(row => row.value).join() !== before.map(row => row.value).join())
    const { id, totalCount } = await closePosition()
    await eventually('no row of the closed position', () => rows(page), all => all.every(row => row.id !== id))
    await eventually('another count', () => page.getByLabel('Count').innerText(), count => count !== String(totalCount))
  })

  test('a price that could not be read comes with the next event', async t => {
    const { page } = await open(t, name)
    interface Answer { data: { searchMarkets?: { nodes: { tokens: { price: unknown }[] }[] } } }
    await page.route('**/graphql', async route => {
      const response = await route.fetch()
      const answer = await response.json() as Answer
      for (const { tokens } of answer.data.searchMarkets?.nodes ?? []) for (const token of tokens) token.price = null
      await route.fulfill({ json: answer })
    })
    await page.reload()
    await eventually('prices', () => page.getByRole('listitem').allInnerTexts(), all => all.length > 0 && all.every(text => text.endsWith('%')))
  })

  test('it goes on after a restart of the server and an outage of the stream', async t => {
    const { page, problems } = await open(t, name)
    const token = followed(page)
    await page.getByRole('listitem').getByRole('button').first().click()
    await eventually('a book', () => sequence(page), Boolean)
    const moves = async (what: string) => {
      const [values, book] = [(await rows(page)).map(row => row.value).join(), await sequence(page)]
      await eventually(`other values after ${what}`, () => rows(page), all => all.length >= 10 && all.map(row => row.value).join() !== values)
      await moved(`another book after ${what}`, token(), book, () => sequence(page))
    }
    await eventually('positions', () => rows(page), all => all.length === 10)
    await moves('the start')
    await control('faults', { faults: [{ on: 'opens', kind: 'status', status: 503 }] })
    // Prices are stale only until the service reads them over REST, so begin to wait before the outage.
    await Promise.all([page.locator('[data-stale=true]').first().waitFor(), control('restart', { code: 4003 })])
    await control('reset', {})
    await eventually('no stale price', () => page.locator('[data-stale=true]').count(), n => n === 0)
    await moves('the outage')
    await restart()
    await moves('the restart')
    const network = /WebSocket connection to|Failed to load resource/
    assert.deepEqual(problems.filter(problem => !network.test(problem)), [])
    problems.length = 0
  })
}
