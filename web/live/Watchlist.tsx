// The markets that the user watches.
import { useState } from 'react'
import { useQuery } from 'urql'
import { WatchedMarketsDocument } from './__generated__/operations'
import { reason } from './format'
import { useAgain } from './live'
import { MarketTable } from './MarketTable'
import { useTitle } from './route'
import { Source } from './Source'
import { sortOf } from './sorts'
import { useWatchlist } from './watched'

export function Watchlist() {
  useTitle('Watchlist')
  const ids = useWatchlist()
  const [sort, setSort] = useState(() => sortOf('volume'))
  const variables = { marketIds: [...ids] }
  const [{ data, error }, ask] = useQuery({ query: WatchedMarketsDocument, variables, pause: ids.length === 0 })
  useAgain(error, ask)
  const markets = ids.length === 0 ? [] : (data?.markets ?? []).flatMap(market => (market && ids.includes(market.marketId) ? [market] : []))
  return (
    <>
      <div className="bar"><h1 tabIndex={-1}>Watchlist</h1></div>
      {error && <p role="alert">The markets could not be read: {reason(error)}</p>}
      {ids.length === 0
        ? <>
          <p className="panel">Press ☆ beside a market to watch it. The list stays in this browser.</p>
          <p className="below"><a className="button" href="#/">Find a market</a></p>
        </>
        : <MarketTable markets={markets} sort={sort} onSort={setSort} caption="Watched markets with the live price of the leading outcome" />}
      {ids.length > 0 && <p className="below"><Source of="Watchlist" document={WatchedMarketsDocument} variables={variables} /></p>}
    </>
  )
}
