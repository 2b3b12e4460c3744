// The list of markets: search, and a row for each with its live price.
import { useDeferredValue, useEffect, useRef, useState } from 'react'
import { useQuery } from 'urql'
import { SearchMarketsDocument, type SearchMarketsQuery } from './__generated__/operations'
import { Change } from './Change'
import { compact, count, date, reason } from './format'
import { Freshness } from './Freshness'
import { useAgain } from './live'
import { Price } from './Price'
import { join, usePrices, useRecentPrices, type Point, type Quote } from './prices'
import { tokenPath, useTitle } from './route'
import { Sparkline } from './Sparkline'
import { useVisible } from './visible'

type Market = NonNullable<SearchMarketsQuery['searchMarkets']>['nodes'][number]

const pageSize = 25

const sorts = {
  'Most traded today': { sort: 'VOLUME_24H', order: 'DESC' },
  'Most liquid': { sort: 'LIQUIDITY', order: 'DESC' },
  'Ending soon': { sort: 'ENDS_AT', order: 'ASC' },
} as const

export function Markets() {
  const [text, setText] = useState('')
  const [sort, setSort] = useState<keyof typeof sorts>('Most traded today')
  const [found, setFound] = useState('')
  const query = useDelayed(text.trim(), 250)
  useTitle('Markets')
  return (
    <>
      <h1 tabIndex={-1}>Markets</h1>
      <form role="search" onSubmit={event => event.preventDefault()}>
        <label>
          <span className="unseen">Search the markets</span>
          <input type="search" value={text} onChange={event => setText(event.target.value)} placeholder="Search the markets" />
        </label>
        <label>
          <span className="unseen">Order</span>
          <select value={sort} onChange={event => setSort(event.target.value as keyof typeof sorts)}>
            {Object.keys(sorts).map(name => <option key={name}>{name}</option>)}
          </select>
        </label>
      </form>
      <p className="found" role="status">{found}</p>
      <Results key={`${query} ${sort}`} query={query} sort={sort} onFound={setFound} />
    </>
  )
}

interface ResultsProps {
  query: string
  sort: keyof typeof sorts
  /** Is told what was found, in words. */
  onFound: (found: string) => void
}

function Results({ query, sort, onFound }: ResultsProps) {
  const [markets, setMarkets] = useState<Market[]>([])
  const [after, setAfter] = useState<string>()
  const [{ data, error, fetching }, ask] = useQuery({
    query: SearchMarketsDocument, variables: { query, ...sorts[sort], first: pageSize, after }, requestPolicy: 'cache-and-network',
  })
  const page = data?.searchMarkets
  useEffect(() => {
    if (page) setMarkets(markets => [...new Map([...markets, ...page.nodes].map(market => [market.id, market])).values()])
  }, [page])
  useAgain(error, ask)

  const none = page?.nodes.length === 0 && markets.length === 0
  const total = page?.totalCount
  useEffect(() => {
    if (page) onFound(none ? 'No open market fits.' : total == null ? '' : `${count(String(total))} open ${total === 1 ? 'market' : 'markets'}`)
  }, [page, none, total, onFound])

  // The first row of another page has the focus after the button that brought it.
  const links = () => document.querySelectorAll<HTMLElement>('.markets tbody a')
  const next = useRef<number>(undefined)
  useEffect(() => {
    const link = next.current === undefined ? undefined : links()[next.current]
    if (!link) return
    next.current = undefined
    link.focus()
  }, [markets])
  const more = () => {
    if (fetching) return
    next.current = links().length
    setAfter(page?.pageInfo.endCursor ?? undefined)
  }

  if (markets.length === 0 && error) return <p role="alert">The markets could not be read: {reason(error)}</p>
  if (none) return <p className="panel">Try another word, or fewer.</p>
  return (
    <>
      <Table markets={markets} />
      {error && <p role="alert">No more markets could be read: {reason(error)}</p>}
      {page?.pageInfo.hasNextPage && (
        <button type="button" aria-disabled={fetching} onClick={more}>More markets</button>
      )}
    </>
  )
}

function Table({ markets }: { markets: Market[] }) {
  const [visible, observe] = useVisible()
  const { quotes, error } = usePrices(visible)
  const recent = useRecentPrices(visible)
  return (
    <>
      <table className="markets">
        <caption className="unseen">Open markets with the live price of their first outcome</caption>
        <thead>
          <tr>
            <th scope="col">Market</th>
            <th scope="col" className="figure">Price</th>
            <th scope="col" className="figure change-column">Lately</th>
            <td className="spark" />
            <th scope="col" className="figure wide">Volume, 24 h</th>
            <th scope="col" className="figure wide">Ends</th>
          </tr>
        </thead>
        <tbody>
          {markets.length === 0 && Array.from({ length: 12 }, (_, i) => <SkeletonRow key={i} />)}
          {markets.map(market => {
            const [token] = market.tokens
            return token && (
              <Row
                key={market.id} market={market} token={token} observe={observe(token.tokenId)}
                quote={quotes[token.tokenId]} points={join(recent[token.tokenId], quotes[token.tokenId]?.heard)}
              />
            )
          })}
        </tbody>
      </table>
      {error && <p role="alert" className="notice">Prices: {reason(error)}</p>}
    </>
  )
}

interface RowProps {
  market: Market
  token: Market['tokens'][number]
  quote: Quote | undefined
  points: Point[]
  observe: (element: Element | null) => (() => void) | undefined
}

function Row({ market, token, quote, points, observe }: RowProps) {
  const by = quote && points[0] ? 100 * (Number(quote.price) - points[0].price) : 0
  return (
    <tr ref={observe} data-token={token.tokenId}>
      <th scope="row">
        <a href={tokenPath(market.marketId, token.tokenId)}>{market.question ?? market.marketId}</a>
        <span className="detail">{market.category && <span className="wide">{market.category} · </span>}<Freshness heard={quote} /></span>
      </th>
      <td className="figure">
        <Price quote={quote} />
        <span className="detail outcome">{token.outcome}</span>
      </td>
      <td className="figure change-column">{quote && <Change by={by}>{`${Math.abs(by).toFixed(1)} pt`}</Change>}</td>
      <td className="spark" aria-hidden="true"><Sparkline points={points} /></td>
      <td className="figure wide">{compact(market.volume24h)}</td>
      <td className="figure wide">{date(market.endsAt)}</td>
    </tr>
  )
}

const SkeletonRow = () => (
  <tr aria-hidden="true">
    <th><span className="waiting long" /><span className="detail"><span className="waiting" /></span></th>
    <td className="figure"><span className="waiting" /></td>
    <td className="figure change-column" />
    <td className="spark" />
    <td className="figure wide"><span className="waiting" /></td>
    <td className="figure wide"><span className="waiting" /></td>
  </tr>
)

/** A value once it has stayed the same for a while. */
function useDelayed<T>(value: T, milliseconds: number): T {
  const [delayed, setDelayed] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), milliseconds)
    return () => clearTimeout(timer)
  }, [value, milliseconds])
  return useDeferredValue(delayed)
}
