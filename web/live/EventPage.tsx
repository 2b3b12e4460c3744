// The page of an event: all outcomes by price, and the leading ones in one chart.
import { lazy, Suspense } from 'react'
import { useQuery } from 'urql'
import { EventPageDocument } from './__generated__/operations'
import { cents, date, reason, useMoney } from './format'
import { nameOf } from './EventCards'
import { isLasting, useAgain } from './live'
import { candidates, usePrices } from './prices'
import { tokenPath, useTitle } from './route'
import { Source } from './Source'

const Compare = lazy(() => import('./Compare'))

export function EventPage({ eventId }: { eventId: string }) {
  const variables = { eventId }
  const [{ data, error }, ask] = useQuery({ query: EventPageDocument, variables })
  useAgain(error, ask)
  const { compactMoney } = useMoney()
  const event = data?.event
  const markets = event?.markets?.nodes ?? []
  const outcomes = markets.flatMap(market => candidates(market.tokens).map(token => ({ market, token, name: nameOf(market, token.outcome, markets.length) })))
  const { quotes, error: priceError } = usePrices(outcomes.map(({ token }) => token.tokenId).slice(0, 500))
  const price = (tokenId: string) => Number(quotes[tokenId]?.price ?? -1)
  const byPrice = outcomes.toSorted((a, b) => price(b.token.tokenId) - price(a.token.tokenId))
  const ready = outcomes.length > 0 && outcomes.every(({ token }) => quotes[token.tokenId])
  useTitle(event?.title ?? 'Event')
  const problem = error ?? priceError
  if (data && !event) return <><h1 tabIndex={-1}>Event</h1><p role="alert">The venue does not know this event.</p></>
  return (
    <>
      <p className="crumbs"><a href="#/">Markets</a></p>
      <h1 tabIndex={-1}>{event?.title ?? (problem ? 'Event' : 'Reading the event…')}</h1>
      {problem && !isLasting(problem) && <p role="alert">{reason(problem)}</p>}
      <dl className="facts">
        <div><dt>Volume</dt><dd>{compactMoney(event?.volume)}</dd></div>
        <div><dt>Ends</dt><dd>{date(event?.endsAt)}</dd></div>
        <div><dt>Outcomes</dt><dd>{outcomes.length || '–'}</dd></div>
      </dl>
      <div className="pair">
        <section className="panel" aria-labelledby="outcomes">
          <h2 id="outcomes">Outcomes <Source of="Event" document={EventPageDocument} variables={variables} /></h2>
          <div className="bars">
            {byPrice.map(({ market, token, name }) => (
              <a key={token.id} className="bar-row" href={tokenPath(market.marketId, token.tokenId)} style={{ '--share': `${100 * Math.max(0, price(token.tokenId))}%` } as object}>
                <span>{name}</span>
                <span className="figure">{market.status === 'OPEN' ? '' : `${market.status.toLowerCase()} `}{price(token.tokenId) < 0 ? '…' : cents(price(token.tokenId))}</span>
              </a>
            ))}
          </div>
        </section>
        <Suspense fallback={<section className="panel chart" />}>
          {ready ? <Compare outcomes={byPrice.map(({ token, name }) => ({ tokenId: token.tokenId, name }))} /> : <section className="panel chart" />}
        </Suspense>
      </div>
    </>
  )
}
