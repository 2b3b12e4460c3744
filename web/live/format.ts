// Formats prices, sums, times and errors for the page.
import { useMemo } from 'react'
import type { CombinedError } from 'urql'
import { useVenue } from './Venue'

const decimals = (least: number, most = least, options: Intl.NumberFormatOptions = {}) =>
  new Intl.NumberFormat('en', { minimumFractionDigits: least, maximumFractionDigits: most, ...options })

const tenths = decimals(1)
const exact = decimals(1, 2)
const hundredths = decimals(2)
const gains = decimals(2, 2, { signDisplay: 'exceptZero' })
const compacts = decimals(1, 1, { notation: 'compact' })
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' })
const days = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' })
const times = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' })

/** A price in hundredths of the currency, always with one decimal: "0.632" is 63.2¢. */
export const cents = (price: string | number) => `${tenths.format(Number(price) * 100)}¢`

/** A price in hundredths of the currency, with a second decimal if it has one. */
export const exactCents = (price: string | number) => `${exact.format(Number(price) * 100)}¢`

/** The chance that a price states, in percent with the decimals of exactCents. */
export const chance = (price: string) => `${exact.format(Number(price) * 100)}%`

/** A price in hundredths without the sign ¢. All prices of a column have the same number of decimals, so that they line up. */
export const plainCents = (price: string, decimals: number) => (Number(price) * 100).toFixed(decimals)

/** The greatest number of decimals of the prices when they are written in hundredths. */
export const centDecimals = (prices: string[]) => Math.max(0, ...prices.map(price => (price.split('.')[1]?.replace(/0+$/, '').length ?? 0) - 2))

/** The greatest number of decimals of the sizes, at most 2. The result is 0 if any size is 1000 or more. */
export const sizeDecimals = (sizes: string[]) => sizes.some(size => Number(size) >= 1000) ? 0 : Math.min(2, Math.max(0, ...sizes.map(size => size.split('.')[1]?.replace(/0+$/, '').length ?? 0)))

/** A number of shares. */
export const shares = (size: string | number, decimals = 2) => Number(size).toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })

/** A whole number, such as a count of markets. */
export const count = (n: number) => n.toLocaleString('en')

/** A large number in few characters, with one decimal; a dash if it is not known. */
export const compact = (sum: string | number | null | undefined) => (sum == null ? '–' : compacts.format(Number(sum)))

/** A number with two decimals and a plus or minus sign, except that zero has no sign. */
export const signed = (n: string | number) => gains.format(Number(n)).replace('-', '−')

export const date = (instant: string | null | undefined) => (instant == null ? '–' : dates.format(new Date(instant)))

/** The day of an instant in UTC. The year is included only if it differs from the present year. */
export const day = (instant: string | null | undefined) =>
  instant == null ? '–' : new Date(instant).getUTCFullYear() === new Date().getUTCFullYear() ? days.format(new Date(instant)) : date(instant)

export const time = (instant: string | Date) => times.format(new Date(instant))

/** How long ago something was, in the largest unit that fits. */
export function ago(instant: string | Date, now: number): string {
  const seconds = Math.max(0, Math.floor((now - new Date(instant).getTime()) / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`
}

/**
 * The reason of a failure: the message of the first GraphQL error without the endpoint in parentheses, or a fixed text if there was no
 * GraphQL response.
 */
export function reason(error: CombinedError) {
  const [first] = error.graphQLErrors
  const venue = first?.extensions['venue']
  return `${venue ? `${venue}: ` : ''}${first?.message.replace(/ \([a-z-]+\)$/, '') ?? 'The server cannot be reached'}`
}

/** A text with a capital first letter and lower-case letters after it. */
export const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1).toLowerCase()

/** Returns the functions that write sums of money in the currency of a venue, or of the first venue. */
export function useMoney(venue?: string | null) {
  const currency = useVenue(venue)?.currency ?? undefined
  return useMemo(() => moneyIn(currency), [currency])
}

function moneyIn(currency: string | undefined) {
  const symbol = currency && /^[A-Z]{3}$/.test(currency)
    ? decimals(0, 0, { style: 'currency', currency }).formatToParts(0).find(({ type }) => type === 'currency')!.value
    : ''
  const sign = (text: string) => (symbol ? text.replace(/\d/, digit => symbol + digit) : text)
  const whole = (text: string) => (symbol || !currency || text === '–' ? sign(text) : `${text} ${currency}`)
  return {
    ...formats(whole),
    /** The same for the cells of a table. The code of a currency without a symbol is only in the table's head: see headed. */
    cell: formats(sign),
    /** The name of a column of sums, with the code of a currency that has no symbol. */
    headed: (name: string) => (symbol || !currency ? name : `${name}, ${currency}`),
  }
}

function formats(unit: (text: string) => string) {
  const known = (sum: string | null | undefined, write: (sum: string) => string) => (sum == null ? '–' : unit(write(sum)))
  return {
    /** A sum with two decimals; a dash if it is not known. */
    money: (sum: string | null | undefined) => known(sum, sum => hundredths.format(Number(sum)).replace('-', '−')),
    /** A profit or loss with its sign. */
    gain: (sum: string) => unit(signed(sum)),
    /** A sum in few characters: from 1,000 on with one decimal and the letter of its size. */
    compactMoney: (sum: string | null | undefined) => known(sum, sum => (Math.abs(Number(sum)) < 1000 ? hundredths.format(Number(sum)) : compact(sum))),
  }
}
