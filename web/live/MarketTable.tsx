// Markets as rows of a table. Each row has one line with the live price of the market's leading outcome.
import { memo } from 'react'
import type { ListedMarketFragment } from './__generated__/operations'
import { Change } from './Change'
import { day as dayOf, reason, useMoney } from './format'
import { StaleMark } from './Freshness'
import { labelOf, outcomeOf } from './names'
import { useNarrow } from './narrow'
import { Price } from './Price'
import { candidates, leader, lineOf, useDays, usePrices, type Day, type Quote } from './prices'
import { tokenPath } from './route'
import { changeOf, sorted, type Column, type Sort } from './sorts'
import { Sparkline } from './Sparkline'
import { Star } from './Star'
import { VenueTag, useVenueNames } from './Venue'
import { useVisible } from './visible'

interface Props {
  markets: readonly ListedMarketFragment[]
  caption: string
  /** Undefined if the venue did not sort the list. */
  sort: Sort | undefined
  onSort: (sort: Sort) => void
}

export function MarketTable({ markets, caption, sort, onSort }: Props) {
  const [visible, observe] = useVisible()
  const inView = markets.filter(({ id }) => visible.includes(id))
  const { quotes, error } = usePrices(inView.flatMap(({ tokens }) => candidates(tokens).map(({ tokenId }) => tokenId)).sort())
  const narrow = useNarrow()
  const days = useDays(inView.flatMap(({ tokens }) => leader(tokens, quotes)?.tokenId ?? []).sort())
  return (
    <>
      <table className={`markets${without(markets, 'volume24h')}${without(markets, 'liquidity')}`}>
        <caption className="unseen">{caption}</caption>
        <Head sort={sort} onSort={onSort} />
        <tbody>
          {markets.length === 0 && Array.from({ length: 18 }, (_, i) => <SkeletonRow key={i} />)}
          {(sort ? sorted(markets, sort, quotes, days) : markets).map(market => {
            const token = leader(market.tokens, quotes) ?? (market.tokens.length === 1 ? market.tokens[0] : undefined)
            return (
              <Row
                key={market.id} market={market} token={token} observe={observe(market.id)} narrow={narrow}
                quote={token && quotes[token.tokenId]} day={token && days[token.tokenId]}
              />
            )
          })}
        </tbody>
      </table>
      {error && error.graphQLErrors.length > 0 && <p role="alert" className="notice">Prices: {reason(error)}</p>}
    </>
  )
}

/** A class that hides a column, if the venue has the figure of no market. */
const without = (markets: readonly ListedMarketFragment[], figure: 'volume24h' | 'liquidity') =>
  (markets.length > 0 && markets.every(market => market[figure] == null) ? ` no-${figure}` : '')

const columns: [column: Column, name: string, className: string][] = [
  ['price', 'Price', 'figure price-column'], ['change', '24 h', 'figure change-column'], ['volume', '24 h volume', 'figure wide volume24h'],
  ['liquidity', 'Liquidity', 'figure wider liquidity'], ['ends', 'Ends', 'figure roomy'],
]

function Head({ sort, onSort }: Pick<Props, 'sort' | 'onSort'>) {
  const { headed } = useMoney()
  const several = useVenueNames().length > 0
  const head = (column: Column, name: string, className: string) => {
    const active = sort?.column === column ? sort : undefined
    const ascending = active ? !active.ascending : column === 'name' || column === 'ends'
    return (
      <th key={column} scope="col" className={className} aria-sort={active ? (active.ascending ? 'ascending' : 'descending') : undefined}>
        <button type="button" onClick={() => onSort({ column, ascending })}>
          {(column === 'volume' || column === 'liquidity') && !several ? headed(name) : name}<span aria-hidden="true">{active ? (active.ascending ? '\u00a0↑' : '\u00a0↓') : ''}</span>
        </button>
      </th>
    )
  }
  return (
    <thead>
      <tr>
        <td className="starred" />
        {head('name', 'Market', 'name-column')}
        <th scope="col" className="outcome-column roomy">Outcome</th>
        {columns.slice(0, 2).map(column => head(...column))}
        <td className="spark" />
        {columns.slice(2).map(column => head(...column))}
      </tr>
    </thead>
  )
}

interface RowProps {
  market: ListedMarketFragment
  token: ListedMarketFragment['tokens'][number] | undefined
  quote: Quote | undefined
  day: Day | undefined
  observe: (element: Element | null) => (() => void) | undefined
  /** Whether the row is one of a phone, with the change below the price. */
  narrow: boolean
}

function Row({ market, token, quote, day, observe, narrow }: RowProps) {
  const money = useMoney(market.venue)
  const cell = useVenueNames().length > 0 ? money : money.cell // the head names no currency of several
  const by = changeOf(quote?.price, day)
  const name = market.question ?? market.marketId
  const first = token ?? market.tokens[0]
  const label = first?.outcomeKind === 'YES' ? labelOf(market) : outcomeOf(market, token)
  const change = by !== undefined && <Change by={by}>{`${Math.abs(by).toFixed(1)}¢`}</Change>
  return (
    <tr ref={observe} data-token={token?.tokenId} data-market={market.marketId}>
      <td className="starred"><Star marketId={market.marketId} name={name} /></td>
      <th scope="row">
        <span className="cell">
          {first ? <a href={tokenPath(market.marketId, first.tokenId)} title={name}>{name}</a> : name}
          {!narrow && <StaleMark heard={quote} />}
          <VenueTag of={market.venue} />
          {label && <span className="tag label">{label}</span>}
          {market.category && <span className="tag">{market.category}</span>}
        </span>
        <span className="detail narrow">{narrow && <StaleMark heard={quote} />} {outcomeOf(market, token) ?? '…'}{market.volume24h != null && ` · ${money.compactMoney(market.volume24h)} today`}</span>
      </th>
      <td className="outcome-column roomy"><span className="outcome">{outcomeOf(market, token)}</span></td>
      <td className="figure"><Price quote={quote} />{narrow && <span className="detail">{change}</span>}</td>
      <td className="figure change-column">{!narrow && change}</td>
      <td className="spark" aria-hidden="true"><Sparkline points={lineOf(day, quote?.heard)} by={by} /></td>
      <td className="figure wide volume24h">{cell.compactMoney(market.volume24h)}</td>
      <td className="figure wider liquidity">{cell.compactMoney(market.liquidity)}</td>
      <td className="figure roomy">{dayOf(market.endsAt)}</td>
    </tr>
  )
}

const SkeletonRow = memo(() => (
  <tr aria-hidden="true">
    <td className="starred" />
    <th><span className="waiting long" /></th>
    <td className="outcome-column roomy"><span className="waiting" /></td>
    <td className="figure"><span className="waiting" /></td>
    <td className="figure change-column" />
    <td className="spark" />
    <td className="figure wide volume24h"><span className="waiting" /></td>
    <td className="figure wider liquidity"><span className="waiting" /></td>
    <td className="figure roomy"><span className="waiting" /></td>
  </tr>
))
