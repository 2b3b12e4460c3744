// Helpers that read the live board and control it.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { control, eventually, frames } from './browser'

/** The wallet of the demo venue that the board opens, with the header that contains its credentials. */
export const wallet = {
  address: '0x2222222222222222222222222222222222222222',
  headers: { 'X-Venue-Credentials': Buffer.from('{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}').toString('base64') },
}

/** A price as the board shows it. */
export interface Shown {
  price: string | undefined
  asOf: string | undefined
  stale: string | undefined
  /** Whether the price is visibly marked as stale. */
  marked: boolean
  text: string
}

/**
 * The prices in the visible rows of the list. evaluateAll would find the elements first and read them later. An element that the
 * page removes in between has no style.
 */
export const listed = (page: Page): Promise<Shown[]> => page.evaluate(() => [...document.querySelectorAll<HTMLElement>('.markets .price')].map(element => {
  const { dataset: { price, asOf, stale }, innerText: text } = element
  return { price, asOf, stale, marked: getComputedStyle(element).textDecorationStyle === 'dotted', text }
}))

/** Waits until at least five prices are listed, and returns them. */
export const prices = (page: Page) => eventually('prices', () => listed(page), all => all.length >= 5)

/** The addresses of the pages of the listed markets. */
export const paths = async (page: Page): Promise<string[]> => {
  await prices(page)
  return page.locator('.markets tbody a').evaluateAll(links => links.map(link => link.getAttribute('href')!))
}

/** The token in the address of a market's page. */
export const tokenOf = (path: string) => decodeURIComponent(path.split('/').at(-1)!)

/**
 * The order book as the page shows it, best prices first. Each level has its exact price and size, and its price as written, in
 * cents.
 */
export const book = (page: Page) => page.locator('.book').evaluate(element => {
  const side = (name: string) => [...element.querySelectorAll<HTMLTableRowElement>(`.${name} tr[data-price]`)].map(row => ({
    price: row.dataset.price, size: row.dataset.size, written: row.cells[0]?.innerText,
  }))
  return { sequence: (element as HTMLElement).dataset.sequence, bids: side('bids'), asks: side('asks').reverse() }
})

/**
 * Moves a token's price away from 0 and 1, where one side of its order book can be empty, and waits until the page shows both sides.
 */
export async function bothSides(page: Page, tokenId: string) {
  await control('price', { tokenId, price: 0.4 })
  return eventually('both sides of the book', () => book(page), ({ bids, asks }) => bids.length > 0 && asks.length > 0)
}

/**
 * Records each state of the page's connection and of the venue's stream, and whether a price was marked as stale, even if only for a
 * moment.
 */
export const record = (page: Page) => page.evaluate(() => {
  const seen = new Set<string>()
  const look = () => {
    const { link, stream } = document.querySelector<HTMLElement>('.pill')!.dataset
    seen.add(`link ${link}`).add(`stream ${stream}`)
    for (const price of document.querySelectorAll('.price[data-stale=true]')) {
      seen.add('a stale price')
      if (getComputedStyle(price).textDecorationStyle !== 'dotted') seen.add('an unmarked stale price')
    }
    if (document.querySelector('.freshness[data-stale=true]')?.textContent?.startsWith('Stale')) seen.add('a price that says so')
  }
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true })
  Object.assign(globalThis, { seen })
})

/** What the page has shown since the call of record. */
export const seen = (page: Page) => page.evaluate(() => [...(globalThis as unknown as { seen: Set<string> }).seen])

export const wantSeen = async (page: Page, ...wanted: string[]) => {
  const all = await seen(page)
  assert.deepEqual(wanted.filter(w => !all.includes(w)), [], `seen: ${all.join(', ')}`)
}

/** Goes to another page of the board. */
export const go = (page: Page, path: string) => page.evaluate(hash => { location.hash = hash }, path)

/**
 * Adds up the layout shifts of each page that is loaded from now on. The returned function fails if the sum of the present page is
 * not below 0.1.
 */
export async function watchShifts(t: TestContext, page: Page) {
  await page.addInitScript(() => {
    interface Shift extends PerformanceEntry { value: number; hadRecentInput: boolean; sources: { node: Node | null }[] }
    const shifts = { sum: 0, moved: [] as string[] }
    Object.assign(globalThis, { shifts })
    new PerformanceObserver(list => {
      for (const { value, hadRecentInput, sources } of list.getEntries() as Shift[]) {
        if (hadRecentInput) continue // a shift that a click causes does not count
        shifts.sum += value
        shifts.moved.push(...sources.map(({ node }) => `${value.toFixed(3)} ${node instanceof Element ? node.outerHTML.slice(0, 80) : node?.nodeName}`))
      }
    }).observe({ type: 'layout-shift', buffered: true })
  })
  return async (name: string) => {
    await frames(page, 30)
    const { sum, moved } = await page.evaluate(() => (globalThis as unknown as { shifts: { sum: number; moved: string[] } }).shifts)
    t.diagnostic(`${name} at ${page.viewportSize()!.width}: ${sum.toFixed(3)}`)
    assert.ok(sum < 0.1, `${name}: ${sum}: ${moved.join('\n')}`)
  }
}

/** Begins and ends each fault of the panel, and waits until the board is live again. */
export async function everyFault(page: Page) {
  await prices(page)
  await page.getByRole('button', { name: 'Faults' }).click()
  const panel = page.getByRole('region', { name: 'Faults of the demo venue' })
  const faults = panel.locator('button[aria-pressed]')
  await eventually('the faults', () => faults.count(), n => n > 12)
  for (const name of await faults.allInnerTexts()) {
    for (const change of ['begun', 'ended']) {
      await panel.getByRole('button', { name, exact: true }).click()
      await panel.getByText(`${name}: ${change}`).waitFor()
    }
  }
  await panel.getByRole('button', { name: 'Repair all' }).click()
  await panel.getByText('All faults are repaired.').waitFor()
  await page.locator('.pill').getByText('Live', { exact: true }).waitFor()
  await eventually('fresh prices', () => listed(page), all => all.length >= 5 && all.every(p => p.stale === 'false'))
}
