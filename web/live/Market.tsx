// The page of a token: its price, chart, book, trades and a ticket, and the other outcomes of its market.
import { lazy, Suspense, useState } from 'react'
import { MarketDocument, type MarketSubscription } from './__generated__/operations'
import { AlertForm } from './AlertForm'
import { Book } from './Book'
import { date, reason, sentence, useMoney } from './format'
import { Freshness } from './Freshness'
import { isLasting, useLive } from './live'
import { Price } from './Price'
import { usePrices } from './prices'
import { eventPath, tokenPath, useTitle } from './route'
import { Source } from './Source'
import { Star } from './Star'
import { Ticket, type Draft } from './Ticket'
import { Trades } from './Trades'

const Chart = lazy(() => import('./Chart'))

type Details = MarketSubscription['marketChanged']['market']

/** Why a market cannot be traded any more; "" while it can be traded. */
export function endOf(market: { status: string; resolution?: { winningOutcome?: string | null } | null } | undefined): string {
  const winner = market?.resolution?.winningOutcome
  switch (market?.status) {
    case 'RESOLVED': return winner ? `Trading has ended. ${winner} won.` : 'Trading has ended. The winner is not known.'
    case 'CLOSED': return 'Trading has ended. The outcome is not known yet.'
    case 'DISPUTED': return 'Trading has ended. The proposed outcome is contested.'
    case 'CANCELLED': return 'The market was cancelled.'
    default: return ''
  }
}

export function Market({ marketId, tokenId }: { marketId: string; tokenId: string }) {
  const { data, error } = useLive({ query: MarketDocument, variables: { marketId } })
  const market = data?.marketChanged.market
  const tokenIds = market?.tokens.map(token => token.tokenId) ?? []
  // Until the market has been read, the page subscribes only to the token in the address.
  const { quotes, error: priceError } = usePrices(tokenIds.includes(tokenId) ? tokenIds : [tokenId])
  const quote = quotes[tokenId]
  const [draft, setDraft] = useState<Draft>({ side: 'BUY', by: 'size', text: '' })
  const problem = error ?? priceError
  const unknown = (!market && isLasting(error)) || (!quote && isLasting(priceError))
  const closed = endOf(market)
  const outcome = market?.tokens.find(token => token.tokenId === tokenId)?.outcome ?? ''
  useTitle(quote && market ? `${market.question}` : market?.question ?? 'Market')
  return (
    <>
      <p className="crumbs">
        <a href="#/">Markets</a>{market?.category && ` · ${market.category}`}
        {market?.event && <> · <a href={eventPath(market.event.eventId)}>{market.event.title ?? 'Event'}</a></>}
      </p>
      <div className="title">
        <h1 tabIndex={-1}>{market?.question ?? (problem ? 'Market' : 'Reading the market…')}</h1>
        {!unknown && <Star marketId={marketId} name={market?.question ?? 'this market'} />}
        {!unknown && <Source of="Market" document={MarketDocument} variables={{ marketId }} />}
      </div>
      {problem && <p role="alert">{reason(problem)}</p>}
      {closed && <p className="banner" role="status">{closed}</p>}
      {!unknown && <>
        <div className="headline" data-token={tokenId}>
          <Price quote={quote} exact />
          <Freshness heard={quote} final={market?.status === 'RESOLVED'} />
          <Facts market={market} />
        </div>
        <nav aria-label="Outcomes" className="outcomes">
          {market?.tokens.map(token => (
            <a key={token.id} href={tokenPath(marketId, token.tokenId)} aria-current={token.tokenId === tokenId ? 'page' : undefined}>
              {token.outcome} <Price quote={quotes[token.tokenId]} />
            </a>
          )) ?? <span className="waiting long" />}
        </nav>
        <div className="panels" key={tokenId}>
          <Suspense fallback={<section className="panel chart" />}><Chart tokenId={tokenId} quote={quote} /></Suspense>
          <Book tokenId={tokenId} closed={closed} onPick={setDraft} />
          <div className="side">
            {closed === '' && <Ticket tokenId={tokenId} outcome={outcome} draft={draft} onDraft={setDraft} />}
            {closed === '' && <AlertForm marketId={marketId} tokenId={tokenId} name={`${market?.question ?? marketId}: ${outcome}`} quote={quote} />}
            <section className="panel rules" aria-labelledby="rules">
              <h2 id="rules">Rules</h2>
              <p>{market?.description ?? '–'}</p>
            </section>
          </div>
          <Trades tokenId={tokenId} />
        </div>
      </>}
    </>
  )
}

function Facts({ market }: { market: Details | undefined }) {
  const { compactMoney } = useMoney()
  return (
    <dl className="facts">
      <div><dt>Status</dt><dd>{market ? sentence(market.status) : '–'}</dd></div>
      <div><dt>24 h volume</dt><dd>{compactMoney(market?.volume24h)}</dd></div>
      <div><dt>Volume</dt><dd>{compactMoney(market?.volume)}</dd></div>
      <div><dt>Liquidity</dt><dd>{compactMoney(market?.liquidity)}</dd></div>
      <div><dt>Ends</dt><dd>{date(market?.endsAt)}</dd></div>
    </dl>
  )
}
