// An order book that its changes keep up to date.
import assert from 'node:assert/strict'
import { applyDelta, type Book } from '@oddsgraph/kit'
import type { OrderbookChangedSubscription } from './__generated__/operations.js'
import { take } from './events.js'

type Update = OrderbookChangedSubscription['orderbookChanged']

/** Follows a book over a few deltas and compares it with the server's after each event. */
export async function follow<T>(results: AsyncIterator<T>, update: (result: T) => Update) {
  let book: Book | undefined
  for (let deltas = 0; deltas < 3;) {
    const event = update(await take(results))
    book = applyDelta(book, event)
    assert.deepEqual({ bids: book.bids.map(numbers), asks: book.asks.map(numbers) }, { bids: event.book.bids.map(numbers), asks: event.book.asks.map(numbers) })
    if (event.kind === 'DELTA') deltas++
  }
}

const numbers = ({ price, size }: Book['bids'][number]) => [Number(price), Number(size)]
