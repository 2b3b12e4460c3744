// The orders of a list of markets. The server sorts whole lists by volume, liquidity, start, end and rise. The page itself sorts by name, price
// and change, but only the rows that it has loaded.
import type { ListedMarketFragment } from './__generated__/operations'
import { leader, type Day, type Days, type Quotes } from './prices'

export type Column = 'name' | 'price' | 'change' | 'volume' | 'liquidity' | 'starts' | 'ends' | 'rise'

/** The columns by which the server can sort, each with its value of the argument sort. */
const server = { volume: 'VOLUME_24H', liquidity: 'LIQUIDITY', starts: 'STARTS_AT', ends: 'ENDS_AT', rise: 'PRICE_CHANGE_24H' } as const

export interface Sort {
  column: Column
  ascending: boolean
}

const columns: readonly string[] = ['name', 'price', 'change', 'volume', 'liquidity', 'starts', 'ends', 'rise'] satisfies Column[]

/** Reads a sort from an address, such as "ends" or "-ends". A minus means descending. */
export function sortOf(text: string): Sort {
  const column = text.replace(/^-/, '')
  return columns.includes(column) ? { column: column as Column, ascending: !text.startsWith('-') } : { column: 'volume', ascending: false }
}

export const sortText = ({ column, ascending }: Sort) => (column === 'volume' && !ascending ? '' : `${ascending ? '' : '-'}${column}`)

/** Whether the server sorts by the column of a sort, not the page. */
export const isOfServer = ({ column }: Sort) => column in server

/** Returns the variables sort and order of the search. */
export function searched({ column, ascending }: Sort) {
  const known = column in server
  return { sort: server[known ? (column as keyof typeof server) : 'volume'], order: known && ascending ? 'ASC' : 'DESC' } as const
}

/** Returns the change of a price in 24 hours, in cents. It returns undefined if the price now or 24 hours ago is unknown. */
export const changeOf = (price: string | undefined, day: Day | undefined) => (price && day ? 100 * (Number(price) - day.before) : undefined)

/** Sorts the rows by the columns that the server cannot sort by. */
export function sorted(
  markets: readonly ListedMarketFragment[], { column, ascending }: Sort, quotes: Quotes, days: Days,
): readonly ListedMarketFragment[] {
  if (column in server) return markets
  const value = (market: ListedMarketFragment) => {
    const token = leader(market.tokens, quotes)
    const price = token && quotes[token.tokenId]?.price
    if (column === 'price') return price === undefined ? undefined : Number(price)
    return token && changeOf(price, days[token.tokenId])
  }
  const sign = ascending ? 1 : -1
  return markets.toSorted((a, b) => {
    if (column === 'name') return sign * (a.question ?? '').localeCompare(b.question ?? '')
    const [x, y] = [value(a), value(b)]
    if (x === undefined || y === undefined) return Number(x === undefined) - Number(y === undefined) // rows out of view have no price
    return sign * (x - y)
  })
}
