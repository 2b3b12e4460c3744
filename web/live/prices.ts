// Live prices of tokens, by one subscription for all of them.
import { useMemo } from 'react'
import { useQuery, type CombinedError } from 'urql'
import {
  PricesDocument, RecentPricesDocument, type PricesSubscription, type PricesSubscriptionVariables,
} from './__generated__/operations'
import { useConnection } from './connection'
import type { Heard } from './Freshness'
import { useAgain, useLive } from './live'

export interface Point {
  time: number
  price: number
}

/** What is known of a token's price. */
export interface Quote extends Heard {
  price: string
  /** The prices that came since the page follows the token, oldest first. */
  heard: Point[]
}

export type Quotes = Readonly<Record<string, Quote>>

/** How many points a sparkline has at most: as many as the server keeps. */
const maxPoints = 120

/** Follows the prices of tokens. A token has no quote until its first event has come. */
export function usePrices(tokenIds: string[]): { quotes: Quotes; error: CombinedError | undefined } {
  const { link } = useConnection()
  const { data: quotes = {}, error, ended } = useLive<PricesSubscription, Quotes, PricesSubscriptionVariables>(
    { query: PricesDocument, variables: { tokenIds }, pause: tokenIds.length === 0 },
    (quotes = {}, { priceChanged: { token, price } }) => {
      const followed = Object.entries(quotes).filter(([tokenId]) => tokenIds.includes(tokenId))
      const point = { time: Date.parse(price.freshness.asOf ?? price.freshness.receivedAt), price: Number(price.price) }
      const heard = [...(quotes[token.tokenId]?.heard ?? []), point].slice(-maxPoints)
      if (performance.getEntriesByName('first-price').length === 0) performance.mark('first-price')
      const quote = { price: price.price, freshness: price.freshness, session: link().session, heard }
      return { ...Object.fromEntries(followed), [token.tokenId]: quote }
    },
  )
  return { quotes: ended ? Object.fromEntries(Object.entries(quotes).map(([id, quote]) => [id, { ...quote, ended }])) : quotes, error }
}

/** What the server has heard of tokens before the page did, of those that somebody followed. It costs no call to the venue. */
export function useRecentPrices(tokenIds: string[]): Readonly<Record<string, Point[]>> {
  const [{ data, error }, ask] = useQuery({
    query: RecentPricesDocument, variables: { tokenIds }, pause: tokenIds.length === 0, requestPolicy: 'network-only',
  })
  useAgain(error, ask)
  return useMemo(() => {
    const recent: Record<string, Point[]> = {}
    for (const token of data?.tokens ?? []) {
      if (token) recent[token.tokenId] = (token.recentPrices ?? []).map(p => ({ time: Date.parse(p.timestamp), price: Number(p.price) }))
    }
    return recent
  }, [data])
}

/** What was heard before and what came since, as one line. */
export function join(before: Point[] = [], since: Point[] = []): Point[] {
  const start = since[0]?.time ?? Infinity
  return [...before.filter(p => p.time < start), ...since].slice(-maxPoints)
}

interface Outcome { tokenId: string; outcomeKind?: string | null }

/**
 * Returns the outcome that stands for a market in one row: YES of a yes-or-no question, otherwise the one with the highest
 * price. It is undefined while no price is known.
 */
export function leader<T extends Outcome>(tokens: readonly T[], quotes: Quotes): T | undefined {
  const yes = tokens.find(token => token.outcomeKind === 'YES')
  if (yes) return yes
  const priced = tokens.filter(({ tokenId }) => quotes[tokenId])
  return priced.reduce<T | undefined>((best, token) => (best && Number(quotes[best.tokenId]!.price) >= Number(quotes[token.tokenId]!.price) ? best : token), undefined)
}

/** Returns the tokens whose prices a row needs: all that may lead. */
export function candidates<T extends Outcome>(tokens: readonly T[]): readonly T[] {
  const yes = tokens.find(token => token.outcomeKind === 'YES')
  return yes ? [yes] : tokens
}
