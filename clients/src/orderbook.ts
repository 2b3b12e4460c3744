// An order book that is kept by its changes.
import assert from 'node:assert/strict'
import type { OrderbookChangedSubscription } from './__generated__/operations.js'
import { take } from './events.js'

type Update = OrderbookChangedSubscription['orderbookChanged']
type Levels = Update['bids']

export class Orderbook {
  #bids = new Map<number, number>()
  #asks = new Map<number, number>()
  #sequence: string | null | undefined = null

  /** Applies an event: a snapshot replaces the book, a delta sets sizes, of which 0 removes the level. */
  apply(update: Update) {
    if (update.kind === 'SNAPSHOT') {
      this.#bids.clear()
      this.#asks.clear()
    } else {
      assert.equal(update.previousSequence, this.#sequence, 'a delta continues the event before')
    }
    this.#sequence = update.sequence
    set(this.#bids, update.bids)
    set(this.#asks, update.asks)
  }

  get bids() { return [...this.#bids].sort(([a], [b]) => b - a) }
  get asks() { return [...this.#asks].sort(([a], [b]) => a - b) }
}

function set(side: Map<number, number>, levels: Levels) {
  for (const { price, size } of levels) {
    if (Number(size) === 0) side.delete(Number(price))
    else side.set(Number(price), Number(size))
  }
}

/** Follows a book over a few deltas and compares it with the server's after each event. */
export async function follow<T>(results: AsyncIterator<T>, update: (result: T) => Update) {
  const book = new Orderbook()
  for (let deltas = 0; deltas < 3;) {
    const event = update(await take(results))
    book.apply(event)
    assert.deepEqual(book.bids, event.book.bids.map(numbers))
    assert.deepEqual(book.asks, event.book.asks.map(numbers))
    if (event.kind === 'DELTA') deltas++
  }
}

const numbers = ({ price, size }: Levels[number]) => [Number(price), Number(size)]
