// Markets as rows of a table. Each row has one line with the live price of the market's leading outcome.
import { memo } from 'react'
import type { ListedMarketFragment } from './__generated__/operations'
import { Change } from './Change'
import { day as dayOf, reason, useMoney } from './format'
import { StaleMark } from './Freshness'
import { Price } from './Price'
import { candidates, leader, lineOf, useDays, usePrices, type Day, type Quote } from './prices'
import { tokenPath } from './route'
import { changeOf, sorted, type Column, type Sort } from './sorts'
import { Sparkline } from './Sparkline'
import { Star } from './Star'
import { useVisible } from './visible'

interface Props {
  markets: readonly ListedMarketFragment[]
  caption: string
  sort: Sort
  onSort: (sort: Sort) => void
}

export function MarketTable({ markets, caption, sort, onSort }: Props) {
  const [visible, observe] = useVisible()
  const inView = markets.filter(({ id }) => visible.includes(id))
  const { quotes, error } = usePrices(inView.flatMap(({ tokens }) => candidates(tokens).map(({ tokenId }) => tokenId)).sort())
  const days = useDays(inView.flatMap(({ tokens }) => leader(tokens, quotes)?.tokenId ?? []).sort())
  return (
    <>
      <table className="markets">
        <caption className="unseen">{caption}</caption>
        <Head sort={sort} onSort={onSort} />
        <tbody>
          {markets.length === 0 && Array.from({ length: 18 }, (_, i) => <SkeletonRow key={i} />)}
          {sorted(markets, sort, quotes, days).map(market => {
            const token = leader(market.tokens, quotes) ?? (market.tokens.length === 1 ? market.tokens[0] : undefined)
            return (
              <Row
                key={market.id} market={market} token={token} observe={observe(market.id)}
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

const columns: [column: Column, name: string, className: string][] = [
  ['price', 'Price', 'figure'], ['change', '24 h', 'figure change-column'], ['volume', '24 h volume', 'figure wide'],
  ['liquidity', 'Liquidity', 'figure wider'], ['ends', 'Ends', 'figure wide'],
]

function Head({ sort, onSort }: Pick<Props, 'sort' | 'onSort'>) {
  const head = (column: Column, name: string, className: string) => {
    const active = sort.column === column
    const ascending = active ? !sort.ascending : column === 'name' || column === 'ends'
    return (
      <th key={column} scope="col" className={className} aria-sort={active ? (sort.ascending ? 'ascending' : 'descending') : undefined}>
        <button type="button" onClick={() => onSort({ column, ascending })}>
          {name}<span aria-hidden="true">{active ? (sort.ascending ? ' ↑' : ' ↓') : ''}</span>
        </button>
      </th>
    )
  }
  return (
    <thead>
      <tr>
        <td className="starred" />
        {head('name', 'Market', 'name-column')}
        <th scope="col" className="outcome-column wide">Outcome</th>
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
}

function Row({ market, token, quote, day, observe }: RowProps) {
  const { compactMoney } = useMoney()
  const by = changeOf(quote?.price, day)
  const name = market.question ?? market.marketId
  const first = token ?? market.tokens[0]
  return (
    <tr ref={observe} data-token={token?.tokenId} data-market={market.marketId}>
      <td className="starred"><Star marketId={market.marketId} name={name} /></td>
      <th scope="row">
        <span className="cell">
          {first ? <a href={tokenPath(market.marketId, first.tokenId)} title={name}>{name}</a> : name}
          <StaleMark heard={quote} />
          {market.category && <span className="tag">{market.category}</span>}
        </span>
        <span className="detail narrow">{token?.outcome ?? '…'} · {compactMoney(market.volume24h)} today</span>
      </th>
      <td className="outcome-column wide"><span className="outcome">{token?.outcome}</span></td>
      <td className="figure"><Price quote={quote} /></td>
      <td className="figure change-column">{by !== undefined && <Change by={by}>{`${Math.abs(by).toFixed(1)}¢`}</Change>}</td>
      <td className="spark" aria-hidden="true"><Sparkline points={lineOf(day, quote?.heard)} by={by} /></td>
      <td className="figure wide">{compactMoney(market.volume24h)}</td>
      <td className="figure wider">{compactMoney(market.liquidity)}</td>
      <td className="figure wide">{dayOf(market.endsAt)}</td>
    </tr>
  )
}

const SkeletonRow = memo(() => (
  <tr aria-hidden="true">
    <td className="starred" />
    <th><span className="waiting long" /></th>
    <td className="outcome-column wide"><span className="waiting" /></td>
    <td className="figure"><span className="waiting" /></td>
    <td className="figure change-column" />
    <td className="spark" />
    <td className="figure wide"><span className="waiting" /></td>
    <td className="figure wider"><span className="waiting" /></td>
    <td className="figure wide"><span className="waiting" /></td>
  </tr>
))
