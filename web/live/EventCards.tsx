// Events as cards. A card has a bar for each leading outcome of its event.
import { useEffect, useState } from 'react'
import { useQuery } from 'urql'
import { EventOutcomesDocument, type ListedMarketFragment } from './__generated__/operations'
import { reason } from './format'
import { StaleMark } from './Freshness'
import { nameOf } from './names'
import { Picture } from './Picture'
import { Price } from './Price'
import { candidates, usePrices } from './prices'
import { eventPath, tokenPath } from './route'
import { VenueTag } from './Venue'
import { useVisible } from './visible'

const shown = 3

/** The number of waiting cards before the first answer. */
const waiting = 12

/** An event with those of its open markets that a search has found. */
export interface EventItem {
  id: string
  eventId: string
  title: string | null
  image: string | null
  markets: readonly ListedMarketFragment[]
}

export function EventCards({ events }: { events: readonly EventItem[] }) {
  const [visible, observe] = useVisible()
  const whole = useWhole(visible)
  const marketsOf = ({ id, markets }: EventItem) => whole[id] ?? markets
  const followed = events.filter(({ id }) => visible.includes(id))
  const { quotes, error } = usePrices(followed.flatMap(event => marketsOf(event).flatMap(({ tokens }) => candidates(tokens).map(({ tokenId }) => tokenId))).slice(0, 500).sort())
  const price = (tokenId: string) => Number(quotes[tokenId]?.price ?? -1)
  return (
    <>
      <ul className="cards">
        {events.length === 0 && Array.from({ length: waiting }, (_, i) => <li key={i} className="panel" aria-hidden="true"><span className="waiting long" /></li>)}
        {events.map(event => {
          const { id, eventId, title, image } = event
          const markets = marketsOf(event)
          const outcomes = markets
            .flatMap(market => candidates(market.tokens).map(token => ({ market, token, name: nameOf(market, token.outcome, markets.length) })))
            .sort((a, b) => price(b.token.tokenId) - price(a.token.tokenId))
          return (
            <li key={id} ref={observe(id)} className="panel">
              <div className="pictured"><Picture url={image} /><h2><a href={eventPath(eventId)}>{title ?? markets[0]?.question ?? eventId}</a></h2></div>
              {outcomes.slice(0, shown).map(({ market, token, name }) => (
                <a key={token.id} className="bar-row" href={tokenPath(market.marketId, token.tokenId)} style={{ '--share': `${100 * Math.max(0, price(token.tokenId))}%` } as object}>
                  <span>{name} <StaleMark heard={quotes[token.tokenId]} /></span><span className="figure"><Price quote={quotes[token.tokenId]} /></span>
                </a>
              ))}
              <p className="detail"><a href={eventPath(eventId)}>All outcomes</a> <VenueTag of={markets[0]?.venue} /></p>
            </li>
          )
        })}
      </ul>
      {error && error.graphQLErrors.length > 0 && <p role="alert" className="notice">Prices: {reason(error)}</p>}
    </>
  )
}

/**
 * Reads all open markets of the events in view, each event once, because a search may find only some of them. The result has no entry
 * for an event that was not read.
 */
function useWhole(visible: readonly string[]): Readonly<Record<string, readonly ListedMarketFragment[]>> {
  const [whole, setWhole] = useState<Readonly<Record<string, readonly ListedMarketFragment[]>>>({})
  const ids = visible.filter(id => !whole[id])
  const [{ data }] = useQuery({ query: EventOutcomesDocument, variables: { ids }, pause: ids.length === 0 })
  useEffect(() => {
    const read = data?.nodes.flatMap(node => {
      const open = node && 'markets' in node ? node.markets?.nodes.filter(({ status }) => status === 'OPEN') ?? [] : []
      return node && open.length > 0 ? [[node.id, open] as const] : []
    })
    if (read?.length) setWhole(before => ({ ...before, ...Object.fromEntries(read) }))
  }, [data])
  return whole
}
