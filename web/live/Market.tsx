// The page of a token: its price, chart, order book and trades, and the other outcomes of its market.
import { MarketDocument, type MarketSubscription } from './__generated__/operations'
import { Book } from './Book'
import { Chart } from './Chart'
import { compact, date, reason } from './format'
import { Freshness } from './Freshness'
import { isLasting, useLive } from './live'
import { Price } from './Price'
import { usePrices } from './prices'
import { tokenPath, useTitle } from './route'
import { Trades } from './Trades'

type Details = MarketSubscription['marketChanged']['market']

export function Market({ marketId, tokenId }: { marketId: string; tokenId: string }) {
  const { data, error } = useLive({ query: MarketDocument, variables: { marketId } })
  const market = data?.marketChanged.market
  const tokenIds = market?.tokens.map(token => token.tokenId) ?? []
  // The one that the address names is followed before the market is known.
  const { quotes, error: priceError } = usePrices(tokenIds.includes(tokenId) ? tokenIds : [tokenId])
  const quote = quotes[tokenId]
  const problem = error ?? priceError
  const unknown = (!market && isLasting(error)) || (!quote && isLasting(priceError))
  useTitle(market?.question ?? 'Market')
  return (
    <>
      <p className="crumbs"><a href="#/">Markets</a>{market?.category && ` · ${market.category}`}</p>
      <h1 tabIndex={-1}>{market?.question ?? (problem ? 'Market' : 'Reading the market…')}</h1>
      {problem && <p role="alert">{reason(problem)}</p>}
      {!unknown && <div className="headline" data-token={tokenId}>
        <Price quote={quote} />
        <Freshness heard={quote} />
        {market && <Facts market={market} />}
      </div>}
      <nav aria-label="Outcomes" className="outcomes">
        {market?.tokens.map(token => (
          <a key={token.id} href={tokenPath(marketId, token.tokenId)} aria-current={token.tokenId === tokenId ? 'page' : undefined}>
            {token.outcome} <Price quote={quotes[token.tokenId]} />
          </a>
        ))}
      </nav>
      {!unknown && <div className="panels" key={tokenId}>
        <Chart tokenId={tokenId} quote={quote} />
        <Book tokenId={tokenId} />
        <Trades tokenId={tokenId} />
        <section className="panel rules" aria-labelledby="rules">
          <h2 id="rules">Rules</h2>
          <p>{market?.description ?? '–'}</p>
        </section>
      </div>}
    </>
  )
}

const Facts = ({ market }: { market: Details }) => (
  <dl className="facts">
    <div><dt>Status</dt><dd>{market.status.toLowerCase()}{market.resolution?.winningOutcome && `: ${market.resolution.winningOutcome}`}</dd></div>
    <div><dt>Volume, 24 h</dt><dd>{compact(market.volume24h)}</dd></div>
    <div><dt>Volume</dt><dd>{compact(market.volume)}</dd></div>
    <div><dt>Ends</dt><dd>{date(market.endsAt)}</dd></div>
  </dl>
)
