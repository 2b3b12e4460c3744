// Keeps an order book up to date with the events of orderbookChanged(deltas: true). After a gap the server sends a new snapshot. If
// applyDelta throws nevertheless, subscribe again.

export interface Level { price: string; size: string }
export interface Book { bids: readonly Level[]; asks: readonly Level[]; sequence?: string | null | undefined }
export interface BookUpdate extends Book { kind: 'SNAPSHOT' | 'DELTA'; previousSequence?: string | null | undefined }

/** Returns the book after an event, best prices first. Pass undefined for the first event. applyDelta does not modify book. */
export function applyDelta(book: Book | undefined, { kind, previousSequence, sequence, bids, asks }: BookUpdate): Book {
  if (kind === 'SNAPSHOT') return { bids, asks, sequence }
  if (!book || book.sequence !== previousSequence) throw new Error('an event is missing before this delta: subscribe again')
  return { bids: change(book.bids, bids, -1), asks: change(book.asks, asks, 1), sequence }
}

function change(levels: readonly Level[], changes: readonly Level[], order: number): Level[] {
  // The key is the price as a number, because "0.5" and "0.50" are equal prices. Sizes stay strings.
  const side = new Map(levels.map(level => [Number(level.price), level]))
  for (const level of changes) Number(level.size) === 0 ? side.delete(Number(level.price)) : side.set(Number(level.price), level)
  return [...side].sort(([a], [b]) => order * (a - b)).map(([, level]) => level)
}
