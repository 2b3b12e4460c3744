import assert from 'node:assert/strict'
import { test } from 'node:test'
import { desktop, eventually, phone, screenshot, visit, wantAccessible } from './browser'

for (const [name, viewport] of Object.entries({ desktop, phone })) {
  test(`the small page asks and subscribes on a ${name}`, async t => {
    const { page } = await visit(t, '/plain', { viewport })
    const state = () => page.getByRole('status').textContent()
    const answer = () => page.locator('#answer').textContent()

    await page.getByRole('button', { name: 'Run' }).click()
    await eventually('the state', state, text => text === 'Answered.')
    const { data } = JSON.parse((await answer()) ?? '')
    assert.equal(data.searchMarkets.nodes.length, 5)
    await wantAccessible(page)

    await page.getByRole('button', { name: 'Follow these prices' }).click()
    await eventually('the state', state, text => Number(/^Live: (\d+) events\.$/.exec(text ?? '')?.[1]) >= 3)
    await eventually('a change', answer, text => text?.includes('"reason": "CHANGE"') ?? false)
    await screenshot(page, `plain-${name}`)
    await wantAccessible(page)

    await page.getByRole('button', { name: 'Stop' }).click()
    await eventually('the state', state, text => text === 'Stopped.')
  })
}

test('the small page says what is wrong', async t => {
  const { page } = await visit(t, '/plain')
  await page.getByLabel('Query or subscription').fill('{ nothing }')
  await page.getByLabel('Query or subscription').press('Control+Enter')
  await eventually('the answer', async () => (await page.locator('#answer').textContent()) ?? '', text => text.includes('GRAPHQL_VALIDATION_FAILED'))
  await page.getByLabel('Query or subscription').fill('subscription { nothing }')
  await page.getByRole('button', { name: 'Run' }).click()
  await eventually('the answer', async () => (await page.locator('#answer').textContent()) ?? '', text => text.includes('GRAPHQL_VALIDATION_FAILED'))
  await page.getByLabel('Variables').fill('{')
  await page.getByRole('button', { name: 'Run' }).click()
  await eventually('the state', () => page.getByRole('status').textContent(), text => /SyntaxError/.test(text ?? ''))
})
