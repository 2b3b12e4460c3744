// The page of a token: its price, chart, book, trades and a ticket, and the other outcomes of its market.
import { lazy, Suspense, useState } from 'react'
import { MarketDocument, type MarketSubscription } from './__generated__/operations'
import { AlertForm } from './AlertForm'
import { Book, type Top } from './Book'
import { Change } from './Change'
import { chance, centDecimals, date, exactCents, reason, sentence, useMoney } from './format'
import { Freshness } from './Freshness'
import { isLasting, useLive } from './live'
import { colourOf, labelOf, questionOf } from './names'
import { Picture } from './Picture'
import { Price } from './Price'
import { useDays, usePrices, type Quote } from './prices'
import { eventPath, questionPath, tokenPath, useTitle } from './route'
import { changeOf } from './sorts'
import { Source } from './Source'
import { Star } from './Star'
import { Ticket, type Draft } from './Ticket'
import { Trades } from './Trades'
import { VenueTag } from './Venue'

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
  const [top, setTop] = useState<Top>({ bid: undefined, ask: undefined })
  const problem = error ?? priceError
  const unknown = (!market && isLasting(error)) || (!quote && isLasting(priceError))
  const closed = endOf(market)
  const outcome = market?.tokens.find(token => token.tokenId === tokenId)?.outcome ?? ''
  const label = market && labelOf(market)
  const [listed] = useState(() => questionOf(marketId))
  const question = market?.question ?? listed
  // A market that was never read says so in the place of its outcomes, so that nothing moves.
  const unread = problem && !market && !unknown ? `${error ? 'The market could not be read: ' : ''}${reason(problem)}` : ''
  useTitle(question ? `${question}${label ? `: ${label}` : ''}` : 'Market')
  return (
    <>
      <p className="crumbs">
        <a href="#/">Markets</a>{market?.category && ` · ${market.category}`}
        {market?.event && <> · <a href={eventPath(market.event.eventId)}>{market.event.title ?? 'All outcomes'}</a></>}
        {market && <> <VenueTag of={market.venue} /></>}
      </p>
      <div className={listed ? 'title' : 'title long'}>
        <Picture url={market?.image} />
        <h1 tabIndex={-1}>{question ?? (problem ? 'Market' : 'Reading the market…')}{label && <span className="label">{label}</span>}</h1>
        {question && !unknown && <Star marketId={marketId} name={question} />}
        {!unknown && <Source of="Market" document={MarketDocument} variables={{ marketId }} />}
      </div>
      {problem && !unread && <p role="alert">{reason(problem)}</p>}
      {unknown && <p className="below"><a className="button" href="#/">All markets</a></p>}
      {closed && <p className="banner" role="status">{closed}</p>}
      {!unknown && <>
        <Headline tokenId={tokenId} quote={quote} market={market} top={closed ? undefined : top} />
        <Outcomes market={market} marketId={marketId} tokenId={tokenId} quotes={quotes} unread={unread} />
        <div className="panels" key={tokenId}>
          <Suspense fallback={<section className="panel chart" />}><Chart tokenId={tokenId} quote={quote} /></Suspense>
          <Book tokenId={tokenId} closed={closed} onPick={setDraft} onTop={setTop} />
          <div className="side">
            {closed === '' && <Ticket tokenId={tokenId} venue={market?.venue} outcome={outcome} draft={draft} onDraft={setDraft} />}
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

interface HeadlineProps {
  tokenId: string
  quote: Quote | undefined
  market: Details | undefined
  /** Undefined if the token is not traded any more. */
  top: Top | undefined
}

/** The price with what a trader reads beside it. */
function Headline({ tokenId, quote, market, top }: HeadlineProps) {
  const { compactMoney } = useMoney(market?.venue)
  const days = useDays([tokenId])
  const by = changeOf(quote?.price, days[tokenId])
  const sums = [['24 h volume', market?.volume24h], ['Volume', market?.volume], ['Liquidity', market?.liquidity]] as const
  const price = (price: string | undefined) => (price === undefined ? '–' : exactCents(price))
  return (
    <div className="headline" data-token={tokenId}>
      <p className="now">
        <Price quote={quote} exact />
        <span className="moved">{by !== undefined && <Change by={by}>{`${Math.abs(by).toFixed(1)}¢ in 24 h`}</Change>}</span>
        <Freshness heard={quote} final={market?.status === 'RESOLVED'} />
      </p>
      <dl className="facts">
        <div><dt>Chance</dt><dd>{quote ? chance(quote.price) : '–'}</dd></div>
        {top && <div><dt>Bid</dt><dd className="up">{price(top.bid)}</dd></div>}
        {top && <div><dt>Ask</dt><dd className="down">{price(top.ask)}</dd></div>}
        <div><dt>Ends</dt><dd>{date(market?.endsAt)}</dd></div>
        <div><dt>Status</dt><dd>{market ? sentence(market.status) : '–'}</dd></div>
        {sums.map(([name, sum]) => (!market || sum != null) && <div key={name}><dt>{name}</dt><dd>{compactMoney(sum)}</dd></div>)}
      </dl>
    </div>
  )
}

interface OutcomesProps {
  market: Details | undefined
  marketId: string
  tokenId: string
  quotes: Readonly<Record<string, Quote>>
  /** Why the market could not be read; "" if it is being read. */
  unread: string
}

/** Links to the outcomes of the market. All prices have the same number of decimals, so that those of a binary market add up to 100¢. */
function Outcomes({ market, marketId, tokenId, quotes, unread }: OutcomesProps) {
  const prices = market?.tokens.flatMap(token => quotes[token.tokenId]?.price ?? []) ?? []
  const exact = centDecimals(prices) > 1
  if (unread) return <p role="alert" className="outcomes">{unread}</p>
  return (
    <nav aria-label="Outcomes" className="outcomes">
      {market?.tokens.map(token => (
        <a key={token.id} className={colourOf(token.outcomeKind)} href={tokenPath(marketId, token.tokenId)} aria-current={token.tokenId === tokenId ? 'page' : undefined}>
          <span className="word">{token.outcome}</span> <Price quote={quotes[token.tokenId]} exact={exact} />
        </a>
      )) ?? <span className="waiting long" />}
      {market?.questions.map(({ id, questionId, title }) => (
        <a key={id} href={questionPath(questionId)} title={title}>Compare venues{market.questions.length > 1 && `: ${title}`}</a>
      ))}
    </nav>
  )
}
