import { test } from 'node:test'
import { eventually, visit } from './browser'

test('the board shows prices that move', async t => {
  const { page } = await visit(t, '/live')
  const prices = () => page.getByRole('cell').allTextContents()
  const first = await eventually('prices', prices, all => all.length > 0 && all.every(price => /^0\.\d+$/.test(price)))
  await eventually('other prices', prices, all => all.join() !== first.join())
})
