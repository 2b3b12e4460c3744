// examples/react-apollo: search, a live book and a live portfolio, also while what is behind them fails.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { control, eventually, restart } from './browser'
import { example } from './example'

const rows = (page: Awaited<ReturnType<typeof example>>['page']) => page.locator('[data-id]').evaluateAll(rows =>
  rows.map(row => ({ id: row.getAttribute('data-id')!, value: row.querySelector('[data-value]')!.getAttribute('data-value')! })))

const open = (t: TestContext) => example(t, 'react-apollo')

const sequence = (page: Awaited<ReturnType<typeof example>>['page']) => page.locator('[data-sequence]').getAttribute('data-sequence')

test('search and a live book', async t => {
  const { page } = await open(t)
  await page.getByRole('searchbox').fill('the')
  const market = page.getByRole('listitem').getByRole('button').first()
  await market.click()
  const first = await eventually('a book', () => sequence(page), Boolean)
  assert.ok(await page.getByRole('table', { name: 'Bids' }).getByRole('row').count() > 0)
  await eventually('a change', () => sequence(page), now => now !== first)
})

test('a portfolio that changes', async t => {
  const { page } = await open(t)
  const before = await eventually('positions', () => rows(page), all => all.length === 10)
  await eventually('other values', () => rows(page), all => all.map(row => row.value).join() !== before.map(row => row.value).join())
  await eventually('sorted values', () => rows(page), all => all.every(({ value }, i) => i === 0 || Number(value) <= Number(all[i - 1]!.value)))
  await page.getByRole('button', { name: 'More', exact: true }).click()
  const more = await eventually('another page', () => rows(page), all => all.length > 10)
  assert.equal(new Set(more.map(({ id }) => id)).size, more.length)
})

test('it goes on after a restart of the server and an outage of the stream', async t => {
  const { page, problems } = await open(t)
  await page.getByRole('listitem').getByRole('button').first().click()
  await eventually('a book', () => sequence(page), Boolean)
  const moves = async (what: string) => {
    const [values, book] = [(await rows(page)).map(row => row.value).join(), await sequence(page)]
    await eventually(`other values after ${what}`, () => rows(page), all => all.length >= 10 && all.map(row => row.value).join() !== values)
    await eventually(`another book after ${what}`, () => sequence(page), now => now !== book)
  }
  await eventually('positions', () => rows(page), all => all.length === 10)
  await moves('the start')
  await control('faults', { faults: [{ path: '/ws', kind: 'status', status: 503 }] })
  await control('restart', { code: 4003 })
  await page.locator('[data-stale=true]').first().waitFor()
  await control('reset', {})
  await eventually('no stale price', () => page.locator('[data-stale=true]').count(), n => n === 0)
  await moves('the outage')
  await restart()
  await moves('the restart')
  const network = /WebSocket connection to|Failed to load resource/
  assert.deepEqual(problems.filter(problem => !network.test(problem)), [])
  problems.length = 0
})
