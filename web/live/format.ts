// How figures, times and errors are written. Decimals come as texts and are numbers only here, on their way to the screen.
import type { CombinedError } from 'urql'

const percents = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 2 })
const counts = new Intl.NumberFormat('en', { maximumFractionDigits: 2 })
const wholes = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compacts = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const moneys = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const gains = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2, signDisplay: 'exceptZero' })
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' })
const times = new Intl.DateTimeFormat('en', { timeStyle: 'medium' })

/** A price as the probability that it reads as: "0.632" is 63.2%. */
export const percent = (price: string) => `${percents.format(Number(price) * 100)}%`

/** How many decimals the finest of some prices has: written with as many, they stand under each other. */
export const decimalsOf = (prices: string[]) => Math.max(0, ...prices.map(price => price.split('.')[1]?.length ?? 0))

/** A number of shares; without fractions where there are many. */
export const count = (size: string) => (Number(size) < 1000 ? counts : wholes).format(Number(size))

/** A great number in few letters; a dash where it is not known. */
export const compact = (sum: string | number | null | undefined) => (sum == null ? '–' : compacts.format(Number(sum)))

/** A sum of money; a dash where it is not known. */
export const money = (sum: string | null | undefined) => (sum == null ? '–' : moneys.format(Number(sum)))

/** A sum of money that was won or lost, with its sign: a minus, which screen readers read, and no hyphen. */
export const gain = (sum: string) => gains.format(Number(sum)).replace('-', '−')

export const date = (instant: string | null | undefined) => (instant == null ? '–' : dates.format(new Date(instant)))

export const time = (instant: string | Date) => times.format(new Date(instant))

/** How long ago something was, in the greatest unit that fits. */
export function ago(instant: string | Date, now: number): string {
  const seconds = Math.max(0, Math.floor((now - new Date(instant).getTime()) / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`
}

/** Why something failed: what the server says of it, if it was reached. */
export const reason = (error: CombinedError) => error.graphQLErrors[0]?.message ?? 'The server cannot be reached'
