// The ranges of a chart: how far back each goes, and the lengths of its steps and of its candles.
import type { CandleInterval } from './__generated__/operations'

export interface Range {
  name: string
  words: string
  /** Seconds back from now. */
  span: number
  /** Seconds of a step of the line. */
  step: number
  interval: CandleInterval
}

const day = 86_400

export const ranges: readonly [Range, ...Range[]] = [
  { name: '1W', words: '7 days', span: 7 * day, step: 600, interval: 'HOUR' },
  { name: '1H', words: 'hour', span: 3600, step: 60, interval: 'FIVE_MINUTES' },
  { name: '1D', words: '24 hours', span: day, step: 300, interval: 'FIVE_MINUTES' },
  { name: '1M', words: '30 days', span: 30 * day, step: 3600, interval: 'DAY' },
  { name: 'ALL', words: 'year', span: 365 * day, step: day, interval: 'DAY' },
]

/** The ranges from short to long, as buttons show them. */
export const byLength = ranges.toSorted((a, b) => a.span - b.span)

/** The first UTC day of a range; null for the server's default of 7 days. */
export const fromOf = ({ name, span }: Range) => (name === '1W' ? null : new Date(Date.now() - span * 1000).toISOString().slice(0, 10))
