// Live prices of tokens. One subscription delivers the prices of all tokens.
import { useEffect, useRef, useState } from 'react'
import { useClient, type CombinedError } from 'urql'
import { LastDayDocument, PricesDocument, type LastDayQuery, type PricesSubscription, type PricesSubscriptionVariables } from './__generated__/operations'
import { useConnection } from './connection'
import type { Heard } from './Freshness'
import { isLasting, useLive, waitOf } from './live'

export interface Point {
  time: number
  price: number
}

/** A token's present price and its last live prices. */
export interface Quote extends Heard {
  price: string
  /** The last live prices since the page subscribed to the token, oldest first, at most maxPoints. */
  heard: Point[]
}

export type Quotes = Readonly<Record<string, Quote>>

/** The maximum number of live prices of a token that the page stores. */
const maxPoints = 120

/** Subscribes to the prices of tokens. A token has no quote until its first event has arrived. */
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

/** The last 24 hours of a token's price. */
export interface Day {
  /** The price 24 hours ago. */
  before: number
  /** Prices at equal distances in time. The last price is the price at readAt. */
  line: number[]
  readAt: number
}

export type Days = Readonly<Record<string, Day>>

const hours24 = 86_400_000

/** The time in milliseconds after which the last 24 hours of all tokens are read again. */
const daysHold = 10 * 60_000

/**
 * Reads the last 24 hours of tokens. It reads each token once, and again after ten minutes or a retryable error. At some venues
 * each token costs a call, so useDays does not request a token again while a request for the token is running.
 */
export function useDays(tokenIds: string[]): Days {
  const client = useClient()
  const [days, setDays] = useState<Days>({})
  const [round, setRound] = useState(0)
  const requested = useRef(new Set<string>())
  useEffect(() => {
    const missing = tokenIds.filter(tokenId => !requested.current.has(tokenId))
    if (missing.length === 0) return
    for (const tokenId of missing) requested.current.add(tokenId)
    void client.query(LastDayDocument, { tokenIds: missing }, { requestPolicy: 'network-only' }).toPromise().then(({ data, error }) => {
      const read = daysOf(data)
      setDays(days => ({ ...days, ...read }))
      if (!error || isLasting(error)) return
      setTimeout(() => {
        for (const tokenId of missing) if (!read[tokenId]) requested.current.delete(tokenId)
        setRound(round => round + 1)
      }, waitOf(error))
    })
  }, [client, tokenIds.join(), round])
  useEffect(() => {
    const timer = setInterval(() => {
      requested.current.clear()
      setRound(round => round + 1)
    }, daysHold)
    return () => clearInterval(timer)
  }, [])
  return days
}

function daysOf(data: LastDayQuery | undefined): Record<string, Day> {
  const read: Record<string, Day> = {}
  for (const token of data?.tokens ?? []) {
    if (!token?.sparkline || token.price24hAgo == null) continue
    read[token.tokenId] = { before: Number(token.price24hAgo), line: token.sparkline.map(Number), readAt: Date.now() }
  }
  return read
}

/** Returns the prices of a day, followed by the later live prices, as one line. The line ends at the present price. */
export function lineOf(day: Day | undefined, heard: readonly Point[] = []): Point[] {
  if (!day) return []
  const step = hours24 / Math.max(1, day.line.length - 1)
  const points = day.line.map((price, i) => ({ time: day.readAt - step * (day.line.length - 1 - i), price }))
  const later = heard.filter(({ time }, i) => time > day.readAt || i === heard.length - 1)
  return [...points, ...later.map(({ time, price }) => ({ time: Math.max(time, day.readAt), price }))]
}

interface Outcome { tokenId: string; outcomeKind?: string | null }

/**
 * Returns the outcome that represents a market in one row: YES of a yes-or-no question, or the outcome with the highest price of
 * other markets. For other markets it returns undefined while no price is known.
 */
export function leader<T extends Outcome>(tokens: readonly T[], quotes: Quotes): T | undefined {
  const yes = tokens.find(token => token.outcomeKind === 'YES')
  if (yes) return yes
  const priced = tokens.filter(({ tokenId }) => quotes[tokenId])
  return priced.reduce<T | undefined>((best, token) => (best && Number(quotes[best.tokenId]!.price) >= Number(quotes[token.tokenId]!.price) ? best : token), undefined)
}

/** Returns the tokens whose prices a row needs. These are all tokens that leader may return. */
export function candidates<T extends Outcome>(tokens: readonly T[]): readonly T[] {
  const yes = tokens.find(token => token.outcomeKind === 'YES')
  return yes ? [yes] : tokens
}
