// The orders of a list of markets. The server sorts whole lists; by name, price and change the page sorts the rows it has.
import type { ListedMarketFragment } from './__generated__/operations'
import { leader, type Point, type Quotes } from './prices'

export type Column = 'name' | 'price' | 'change' | 'volume' | 'liquidity' | 'ends'

/** What the server is asked for. */
const server = { volume: 'VOLUME_24H', liquidity: 'LIQUIDITY', ends: 'ENDS_AT' } as const

export interface Sort {
  column: Column
  ascending: boolean
}

const columns: readonly string[] = ['name', 'price', 'change', 'volume', 'liquidity', 'ends'] satisfies Column[]

/** Reads a sort from an address, such as "ends" or "-ends". The minus is for descending. */
export function sortOf(text: string): Sort {
  const column = text.replace(/^-/, '')
  return columns.includes(column) ? { column: column as Column, ascending: !text.startsWith('-') } : { column: 'volume', ascending: false }
}

export const sortText = ({ column, ascending }: Sort) => (column === 'volume' && !ascending ? '' : `${ascending ? '' : '-'}${column}`)

/** The variables of the search. */
export function searched({ column, ascending }: Sort) {
  const known = column in server
  return { sort: server[known ? (column as keyof typeof server) : 'volume'], order: known && ascending ? 'ASC' : 'DESC' } as const
}

/** Returns the change of a price since the first of some points, in cents. */
export const changeOf = (price: string | undefined, points: readonly Point[]) => (price && points[0] ? 100 * (Number(price) - points[0].price) : 0)

/** Sorts the rows by what only the page knows. */
export function sorted(
  markets: readonly ListedMarketFragment[], { column, ascending }: Sort, quotes: Quotes, points: (tokenId: string) => Point[],
): readonly ListedMarketFragment[] {
  if (column in server) return markets
  const value = (market: ListedMarketFragment) => {
    const token = leader(market.tokens, quotes)
    const quote = token && quotes[token.tokenId]
    return column === 'price' ? Number(quote?.price ?? -1) : token ? changeOf(quote?.price, points(token.tokenId)) : -1
  }
  const compare = column === 'name'
    ? (a: ListedMarketFragment, b: ListedMarketFragment) => (a.question ?? '').localeCompare(b.question ?? '')
    : (a: ListedMarketFragment, b: ListedMarketFragment) => value(a) - value(b)
  return markets.toSorted((a, b) => (ascending ? compare(a, b) : compare(b, a)))
}
