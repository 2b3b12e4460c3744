// The page of an event: all outcomes by price, the leading ones in one chart, and the rules.
import { lazy, Suspense, useEffect, useState } from 'react'
import { useQuery } from 'urql'
import { EventPageDocument, type ListedMarketFragment } from './__generated__/operations'
import { Change } from './Change'
import { date, reason, useMoney } from './format'
import { StaleMark } from './Freshness'
import { isLasting, useAgain } from './live'
import { nameOf, remember, titleOf } from './names'
import { Picture } from './Picture'
import { Price } from './Price'
import { candidates, useDays, usePrices, type Day, type Quote } from './prices'
import { tokenPath, useTitle } from './route'
import { changeOf } from './sorts'
import { Source } from './Source'
import { VenueTag } from './Venue'
import { useVisible } from './visible'

const Compare = lazy(() => import('./Compare'))

/** Up to this number of outcomes, their list is shorter than the chart, so the rules stand below the list. */
const few = 8

export function EventPage({ eventId }: { eventId: string }) {
  const variables = { eventId }
  const [{ data, error }, ask] = useQuery({ query: EventPageDocument, variables })
  useAgain(error, ask)
  const { compactMoney, headed } = useMoney(data?.event?.venue)
  const [visible, observe] = useVisible()
  const event = data?.event
  const [listed] = useState(() => titleOf(eventId))
  const markets = event?.markets?.nodes ?? []
  const outcomes = markets.flatMap(market => candidates(market.tokens).map(token => ({ market, token, name: nameOf(market, token.outcome, markets.length) })))
  const { quotes, error: priceError } = usePrices(outcomes.map(({ token }) => token.tokenId).slice(0, 500))
  const days = useDays(outcomes.flatMap(({ token }) => (visible.includes(token.id) ? [token.tokenId] : [])).sort())
  const price = (tokenId: string) => Number(quotes[tokenId]?.price ?? -1)
  const traded = markets.some(({ volume24h, status }) => volume24h != null || status !== 'OPEN')
  const ready = outcomes.length > 0 && outcomes.every(({ token }) => quotes[token.tokenId])
  const late = useLate(event != null)
  const byPrice = outcomes.toSorted((a, b) => price(b.token.tokenId) - price(a.token.tokenId))
  useEffect(() => remember(markets), [data])
  useTitle(event?.title ?? listed ?? 'Event')
  const problem = error ?? priceError
  const unread = error && !event
  if (data && !event && !error) return <Unknown />
  const [example] = markets // a venue may give rules only for each market
  const rules = event?.description ?? event?.rules?.nodes[0]?.description
  return (
    <>
      <p className="crumbs"><a href="#/">Markets</a> · <a href="#/?view=events">Events</a>{event?.category && ` · ${event.category}`} {event && <VenueTag of={event.venue} />}</p>
      <div className={listed ? 'pictured' : 'pictured long'}><Picture url={event?.image} /><h1 tabIndex={-1}>{event?.title ?? listed ?? (problem ? 'Event' : 'Reading the event…')}</h1></div>
      {problem && !(event && isLasting(problem)) && <p role="alert">{event ? '' : 'The event could not be read: '}{reason(problem)}</p>}
      {unread && (
        <div className="panel nothing">
          <p>It is read again as soon as the server allows it.</p>
          <button type="button" onClick={() => ask({ requestPolicy: 'network-only' })}>Try again now</button>
        </div>
      )}
      {!unread && <dl className="facts">
        <div><dt>Ends</dt><dd>{date(event?.endsAt)}</dd></div>
        <div><dt>Outcomes</dt><dd>{outcomes.length || '–'}</dd></div>
        {(!event || event.volume24h != null) && <div><dt>24 h volume</dt><dd>{compactMoney(event?.volume24h)}</dd></div>}
        {(!event || event.volume != null) && <div><dt>Volume</dt><dd>{compactMoney(event?.volume)}</dd></div>}
      </dl>}
      {!unread && <div className={outcomes.length > few ? 'event' : 'event few'}>
        <section className="panel" aria-labelledby="outcomes">
          <h2 id="outcomes">Outcomes <Source of="Event" document={EventPageDocument} variables={variables} /></h2>
          <div className={traded ? 'bars' : 'bars no-volume24h'} aria-busy={!event}>
            {event && <p className="bar-head" aria-hidden="true"><span>By price</span><span>24 h</span><span className="volume24h">{headed('24 h volume')}</span><span>Price</span></p>}
            {!ready && !late && outcomes.map(({ token }) => <p key={token.id} className="bar-row" aria-hidden="true"><span className="waiting long" /></p>)}
            {(ready || late) && byPrice.map(({ market, token, name }) => (
              <Outcome key={token.id} market={market} tokenId={token.tokenId} name={name} quote={quotes[token.tokenId]} day={days[token.tokenId]} observe={observe(token.id)} />
            ))}
          </div>
        </section>
        {event && <Suspense fallback={<ChartToCome />}>
          {ready ? <Compare title={leading} outcomes={byPrice.map(({ token, name }) => ({ tokenId: token.tokenId, name }))} quotes={quotes} /> : <ChartToCome />}
        </Suspense>}
        {rules && <section className="panel rules" aria-labelledby="rules"><h2 id="rules">{event?.description || !example || markets.length === 1 ? 'Rules' : `Rules of ${nameOf(example, example.tokens[0]?.outcome, markets.length)}`}</h2><p>{rules}</p></section>}
      </div>}
    </>
  )
}

/** Whether two seconds have passed since begun became true. Until then, the rows wait for all prices, so that none changes its place. */
function useLate(begun: boolean): boolean {
  const [late, setLate] = useState(false)
  useEffect(() => {
    if (!begun) return
    const timer = setTimeout(() => setLate(true), 2000)
    return () => clearTimeout(timer)
  }, [begun])
  return late
}

const leading = 'Leading outcomes'

const ChartToCome = () => <section className="panel chart"><h2>{leading}, last 7 days</h2></section>

interface OutcomeProps {
  market: ListedMarketFragment
  tokenId: string
  name: string
  quote: Quote | undefined
  day: Day | undefined
  observe: (element: Element | null) => (() => void) | undefined
}

/** A row with a bar as long as the chance of the outcome. */
function Outcome({ market, tokenId, name, quote, day, observe }: OutcomeProps) {
  const { cell } = useMoney(market.venue)
  const by = changeOf(quote?.price, day)
  return (
    <a ref={observe} className="bar-row" href={tokenPath(market.marketId, tokenId)} style={{ '--share': `${100 * Number(quote?.price ?? 0)}%` } as object}>
      <span>{name} <StaleMark heard={quote} /></span>
      <span className="moved">{by !== undefined && <Change by={by}>{`${Math.abs(by).toFixed(1)}¢`}</Change>}</span>
      <span className="volume24h">{market.status === 'OPEN' ? cell.compactMoney(market.volume24h) : market.status.toLowerCase()}</span>
      <span className="figure"><Price quote={quote} /></span>
    </a>
  )
}

const Unknown = () => (
  <>
    <h1 tabIndex={-1}>Event</h1>
    <p role="alert">The venue does not know this event.</p>
    <p className="below"><a className="button" href="#/?view=events">All events</a></p>
  </>
)
