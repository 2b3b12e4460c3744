// The ranges of a chart. Each range has a length, the length of a step of the line, and the length of a candle.
import type { CandleInterval } from './__generated__/operations'

export interface Range {
  name: string
  words: string
  /** The length of the range in seconds. The range ends now. */
  span: number
  /** The length of a step of the line in seconds. */
  step: number
  interval: CandleInterval
}

const day = 86_400

/** The lengths of candles in seconds. */
export const lengthOf: Readonly<Record<CandleInterval, number>> = {
  MINUTE: 60, FIVE_MINUTES: 300, FIFTEEN_MINUTES: 900, HOUR: 3600, FOUR_HOURS: 4 * 3600, DAY: day, WEEK: 7 * day,
}

export const ranges: readonly [Range, ...Range[]] = [
  { name: '1W', words: '7 days', span: 7 * day, step: 600, interval: 'FOUR_HOURS' },
  { name: '1H', words: 'hour', span: 3600, step: 60, interval: 'FIVE_MINUTES' },
  { name: '1D', words: '24 hours', span: day, step: 300, interval: 'HOUR' },
  { name: '1M', words: '30 days', span: 30 * day, step: 3600, interval: 'DAY' },
  { name: 'ALL', words: 'year', span: 365 * day, step: day, interval: 'DAY' },
]

/** The ranges from short to long, which is the order of the buttons. */
export const byLength = ranges.toSorted((a, b) => a.span - b.span)

/** The first UTC day of a range. It is null for the range 1W, because 7 days are the server's default. */
export const fromOf = ({ name, span }: Range) => (name === '1W' ? null : new Date(Date.now() - span * 1000).toISOString().slice(0, 10))
