// The pages of a service that executes only trusted documents.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listed, paths, prices } from './board'
import { endpoint, eventually, visit } from './browser'

test('the service refuses other documents', async () => {
  const response = await fetch(endpoint, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ query: '{ serviceStatus { version } }' }),
  })
  assert.equal(response.status, 403)
})

test('the board works', async t => {
  const { page } = await visit(t, '/live')
  const first = await prices(page)
  await eventually('other prices', () => listed(page), all => all.map(p => p.price).join() !== first.map(p => p.price).join())
  const [path] = await paths(page)
  await page.goto(`/live${path}`)
  await page.locator('.book tr[data-price]').first().waitFor()
  await page.locator('.canvas[aria-label^=From]').waitFor()
  await page.goto('/live#/portfolio')
  await page.getByRole('button', { name: 'Open the demo wallet' }).click()
  await page.getByRole('cell').first().waitFor()
})

test('the examples of GraphiQL work', async t => {
  const { page } = await visit(t, '/')
  const text = (editor: string) =>
    page.locator(`${editor} .CodeMirror`).first().evaluate(element => (element as unknown as { CodeMirror: { getValue(): string } }).CodeMirror.getValue())
  await page.locator('.graphiql-query-editor .CodeMirror-line').first().waitFor()
  const tabs = page.getByRole('list', { name: 'Select active operation' }).getByRole('button')
  const names = (await page.locator('.graphiql-tab-button').allTextContents()).filter(name => name !== 'LivePrices')
  assert.ok(names.length > 5)
  for (const name of names) {
    await tabs.getByText(name, { exact: true }).click()
    await eventually('the query', () => text('.graphiql-query-editor'), query => query.includes(` ${name}(`))
    await page.getByRole('button', { name: /execute query/i }).click()
    const { data, errors } = JSON.parse(await eventually('an answer', () => text('.graphiql-response'), answer => answer.endsWith('}')))
    assert.equal(errors, undefined, name)
    assert.ok(Object.values(data).every(value => value !== null), name)
  }
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click()
  await page.getByRole('link', { name: 'Query', exact: true }).waitFor()
})
