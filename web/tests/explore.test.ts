import assert from 'node:assert/strict'
import { test } from 'node:test'
import { visit } from './browser'

test('GraphiQL loads', async t => {
  const { page } = await visit(t, '/')
  await page.getByRole('button', { name: /execute query/i }).waitFor()
  assert.match(await page.title(), /GraphiQL/)
})
