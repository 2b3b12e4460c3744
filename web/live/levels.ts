// The levels of a book: their running totals, and groups of them.
import type { Level } from '../kit/applyDelta'

export interface Summed extends Level {
  /** The number of shares at this price and at all better prices. */
  total: number
}

/** The price steps by which levels are grouped, in hundredths of a cent. 0 means no groups. */
export const steps = [0, 100, 500] as const

export type Step = (typeof steps)[number]

/** Joins the levels of each price step into one level, at the lower end of the step for bids and at the upper end for asks. */
export function grouped(levels: readonly Level[], step: Step, side: 'bids' | 'asks'): readonly Level[] {
  if (step === 0) return levels
  const round = side === 'bids' ? Math.floor : Math.ceil
  const sums = new Map<number, number>()
  for (const { price, size } of levels) {
    const key = round(Math.round(Number(price) * 10_000) / step) * step
    sums.set(key, (sums.get(key) ?? 0) + Number(size))
  }
  return [...sums].map(([price, size]) => ({ price: String(price / 10_000), size: String(Math.round(size * 100) / 100) }))
}

export function summed(levels: readonly Level[]): Summed[] {
  let total = 0
  return levels.map(level => ({ ...level, total: (total += Number(level.size)) }))
}
