// The board over two venues that stand still, with questions that are on both. QUESTIONS names the file of questions.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { differences } from '../live/diff'
import { go, prices, watchShifts } from './board'
import { ask, control, eventually, phone, screenshot, visit, wantAccessible } from './browser'

interface Market { marketId: string; question: string; groupItemTitle: string | null; endsAt: string; description: string; tokens: { tokenId: string; outcomeKind: string; price: { price: string } | null }[] }

const yes = ({ tokens }: Market) => tokens.find(({ outcomeKind }) => outcomeKind === 'YES')

const marketsOf = async (venue: string) => {
  const { searchMarkets } = await ask<{ searchMarkets: { nodes: Market[] } }>(
    `query ($venues: [String!]) { searchMarkets(first: 100, venues: $venues, sort: RELEVANCE, filter: { status: OPEN }) {
      nodes { marketId question groupItemTitle endsAt description tokens { tokenId outcomeKind price { price } } } } }`, { venues: [venue] })
  return searchMarkets.nodes.filter(market => yes(market) && Number(yes(market)!.price?.price) > 0.1 && Number(yes(market)!.price?.price) < 0.9)
}

/** The question of each id, as a market of each venue. */
let pairs: Record<'exact' | 'near' | 'related', [Market, Market]>

/** The path of a question's page. */
const path = (id: string) => `#/question/${id}`

const leg = (market: Market, takerFeeRate: string) =>
  ({ token: yes(market)!.tokenId, rulesSha256: createHash('sha256').update(market.description).digest('hex'), takerFeeRate })

/** Without questions, the board does not name them. Then there are three. */
before(async () => {
  const [ours, theirs] = [await marketsOf('polymarket'), await marketsOf('kalshi')]
  const found = ours.flatMap(market => {
    const same = theirs.filter(other => other.groupItemTitle === market.groupItemTitle && other.endsAt === market.endsAt)
    return market.groupItemTitle && same.length === 1 ? [[market, same[0]!] as [Market, Market]] : []
  })
  assert.ok(found.length >= 3, `${found.length} pairs`)
  pairs = { exact: found[0]!, near: found[1]!, related: found[2]! }
})

/** Writes the questions, and waits until the service has them. */
async function write() {
  const question = (id: keyof typeof pairs, differences?: string[]) => ({
    id, title: `Question ${id}`, match: id.toUpperCase(), differences, checkedAt: '2026-11-20', checkedBy: 'jd', legs: [leg(pairs[id][0], '0'), leg(pairs[id][1], '0.07')],
  })
  await writeFile(process.env['QUESTIONS']!, JSON.stringify({ version: 1, questions: [question('exact'), question('near', ['One pays if it rains.']), question('related', [])] }))
  await eventually('questions', () => ask<{ questions: { totalCount: number } }>('{ questions { totalCount } }', {}), ({ questions }) => questions.totalCount === 3)
}

/** The figures of a row of the best prices: buy, after the fee, sell, after the fee. */
const row = async (page: Page, venue: string) => (await page.locator(`.prices [data-venue=${venue}] td`).allInnerTexts()).map(text => Number(text.replace('Best', '')))

test('without questions there is no link to them', async t => {
  const { page } = await visit(t, '/live')
  await prices(page)
  assert.equal(await page.getByRole('link', { name: 'Questions' }).count(), 0)
  await go(page, '#/questions')
  await page.getByText('This service compares no questions').waitFor()
  await page.getByRole('link', { name: 'All markets' }).waitFor()
  await write()
})

test('a market leads to its question, whose prices are live', async t => {
  const { page } = await visit(t, '/live')
  const [ours] = pairs.exact
  const token = yes(ours)!.tokenId
  await go(page, `#/market/${encodeURIComponent(ours.marketId)}/${encodeURIComponent(token)}`)
  await page.getByRole('link', { name: 'Compare venues' }).click()
  await page.getByRole('heading', { level: 1, name: 'Question exact' }).waitFor()
  await page.getByText('Comparable. The rules texts are those that jd compared on Nov 20, 2026.').waitFor()
  await control('price', { tokenId: token, price: 0.4 })
  const [buy, buyAfterFee, sell] = await eventually('the new price', () => row(page, 'polymarket'), ([buy, , sell]) => buy! > 38 && sell! > 38 && buy! < 42 && sell! < 42)
  assert.ok(buy! > sell! && buyAfterFee === buy)
  const other = await row(page, 'kalshi')
  assert.ok(Math.abs(other[1]! - (other[0]! + 7 * (other[0]! / 100) * (1 - other[0]! / 100))) < 0.01, other.join())
  const best = other[1]! < buyAfterFee! ? 'kalshi' : 'polymarket'
  await page.locator('[data-best=buy]', { hasText: best }).waitFor()
  assert.equal(await page.locator('.books .book tr[data-price]').count() > 10, true)
  await page.locator('.canvas[aria-label*=apart]').waitFor()
  await page.locator('.rules', { hasText: 'Compared on Nov 20, 2026 by jd.' }).waitFor()
})

test('the list has each question, and an unknown one leads back to it', async t => {
  const { page } = await visit(t, `/live${path('nothing')}`)
  await page.getByRole('alert').getByText('There is no question').waitFor()
  await page.getByRole('link', { name: 'All questions' }).click()
  await eventually('all', () => page.locator('.questions li').allInnerTexts(), all => all.length === 3 && all[1]!.includes('Rules differ') && all[1]!.includes('kalshi'))
  await wantAccessible(page)
  await page.getByRole('searchbox').fill('related')
  await eventually('one', () => page.locator('.questions li').count(), n => n === 1)
  await page.getByRole('link', { name: 'Question related' }).click()
  await page.getByText('The questions are only related').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Show anyway' }).count(), 0)
  assert.equal(await page.locator('.prices, .books, .chart').count(), 0)
})

for (const [width, height] of [[390, 844], [800, 1100], [1440, 900]] as const) {
  test(`prices that are not comparable are marked, nothing jumps, and all can be read: ${width}`, async t => {
    const { page } = await visit(t, 'about:blank', { viewport: { width, height }, hasTouch: width === phone.width })
    const wantStill = await watchShifts(t, page)
    await page.goto(`/live${path('exact')}`)
    await page.locator('.canvas[aria-label*=apart]').waitFor()
    await wantStill('comparable')
    await go(page, path('near'))
    await page.getByText('One pays if it rains.').waitFor()
    assert.equal(await page.locator('.prices, .books, .chart').count(), 0)
    await page.getByRole('button', { name: 'Show anyway' }).click()
    await page.locator('.canvas[aria-label*=apart]').waitFor()
    await eventually('marks', () => page.locator('.question, .facts').getByText('Not comparable').count(), n => n === 3)
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme })
      await eventually('a page that fits', () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth), more => more <= 0)
      await screenshot(page, `question-${width}-${colorScheme}`)
      if (width !== 800 && (width === phone.width) === (colorScheme === 'dark')) await wantAccessible(page) // colours and layouts once each
    }
    const small = await page.locator('button, .button').evaluateAll(all => all.filter(one => one.checkVisibility() && Math.min(one.clientWidth, one.clientHeight) < 22).map(one => one.outerHTML))
    assert.deepEqual(small, [])
  })
}

test('a lost connection ends the comparison until it is back', async t => {
  const { page } = await visit(t, 'about:blank')
  let cut = () => {}
  let down = false
  await page.routeWebSocket('**/graphql', socket => {
    if (down) return void socket.close({ code: 1011 })
    socket.connectToServer()
    cut = () => void socket.close({ code: 1011 })
  })
  await page.goto(`/live${path('exact')}`)
  await page.locator('.prices').waitFor()
  down = true
  cut()
  await page.getByText('The connection to this service is interrupted').waitFor()
  assert.equal(await page.locator('.prices, .books, .chart').count(), 0)
  down = false
  await page.locator('.prices').waitFor()
})

test('rules that change end the comparison, and their words are marked', async t => {
  const { page } = await visit(t, `/live${path('exact')}`)
  await page.locator('.prices').waitFor()
  const [ours] = pairs.exact
  await control('market', { marketId: ours.marketId, description: `${ours.description} Rain counts.` })
  await page.getByText('polymarket: the rules text is not the one that was compared').waitFor()
  assert.equal(await page.locator('.prices, .books, .chart').count(), 0)
  assert.ok((await page.locator('mark').allInnerTexts()).some(text => text.includes('Rain counts.')))
  await page.locator('.rules').getByText('Changed', { exact: true }).waitFor()
  await wantAccessible(page)
})

test('the words in which two texts differ', () => {
  const marked = (a: string, b: string) => differences(a, b).map(parts => parts.map(({ text, own }) => (own ? `[${text}]` : text)).join(''))
  assert.deepEqual(marked('It pays if it rains.', 'It pays if it rains.'), ['It pays if it rains.', 'It pays if it rains.'])
  assert.deepEqual(marked('It pays if it rains on May 1.', 'It pays once it rains on 2 May.'), ['It pays [if ]it rains on [May 1.]', 'It pays [once ]it rains on [2 May.]'])
  assert.deepEqual(marked('a b\nc', 'a  b c d'), ['a b\nc', 'a  b c [d]'])
  const long = 'word '.repeat(3000)
  assert.deepEqual(marked(`x ${long}y`, `z ${long}w`)[0], `[x ${long}y]`)
})
