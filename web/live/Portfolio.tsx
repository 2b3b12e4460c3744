// A wallet's positions, valued as prices move.
import { useState } from 'react'
import { Provider } from 'urql'
import { PortfolioDocument, type PortfolioSubscription, type PortfolioSubscriptionVariables } from './__generated__/operations'
import { Change } from './Change'
import { ConnectionContext, useConnection, useLink } from './connection'
import { count, gain, money, percent, reason } from './format'
import { Freshness, useStale, type Heard } from './Freshness'
import { useLive } from './live'
import { tokenPath, useTitle } from './route'
import type { Wallet } from './wallet'

type Update = PortfolioSubscription['portfolioChanged']
type Position = Update['changed'][number]

interface State {
  positions: ReadonlyMap<string, Position>
  summary: Update['summary']
  session: number
}

/** Keeps a portfolio by its events. */
function apply(before: State | undefined, { reason, changed, closedPositionIds, summary }: Update, session: number): State {
  const whole = reason === 'INITIAL' || reason === 'RESYNC'
  const positions = new Map(whole ? [] : before?.positions)
  for (const position of changed) positions.set(position.id, position)
  for (const id of closedPositionIds) positions.delete(id)
  return { positions, summary, session }
}

/** A portfolio over the wallet's own connection. */
export function Portfolio({ wallet, onClose }: { wallet: Wallet; onClose: () => void }) {
  const close = () => {
    wallet.connection.close()
    onClose()
  }
  return (
    <ConnectionContext value={wallet.connection}>
      <Provider value={wallet.connection.client}>
        <Live address={wallet.address} onClose={close} />
      </Provider>
    </ConnectionContext>
  )
}

function Live({ address, onClose }: { address: string; onClose: () => void }) {
  const { link } = useConnection()
  const { state } = useLink()
  useTitle('Portfolio')
  const { data: portfolio, error, ended } = useLive<PortfolioSubscription, State, PortfolioSubscriptionVariables>(
    { query: PortfolioDocument, variables: { address } },
    (before, { portfolioChanged }) => apply(before, portfolioChanged, link().session),
  )
  const summary = portfolio?.summary
  const heard = portfolio && { freshness: portfolio.summary.freshness, session: portfolio.session, ended }
  const stale = useStale(heard)
  return (
    <>
      <div className="title">
        <h1 tabIndex={-1}>Portfolio</h1>
        <button type="button" onClick={onClose}>Close the wallet</button>
      </div>
      <p className="crumbs"><code>{address}</code> <Freshness heard={heard} /></p>
      {state === 'refused' && <p role="alert">The server refused these credentials.</p>}
      {state !== 'refused' && error && <p role="alert">{reason(error)}</p>}
      <dl className={stale ? 'sums stale' : 'sums'} data-as-of={summary?.freshness.asOf ?? summary?.freshness.receivedAt}>
        <div><dt>Total value</dt><dd data-sum="total">{money(summary?.totalValue)}</dd></div>
        <div><dt>Positions</dt><dd data-sum="positions">{money(summary?.positionsValue)}</dd></div>
        <div><dt>Profit and loss</dt><dd data-sum="pnl">{summary?.unrealizedPnl ? <Gain amount={summary.unrealizedPnl} /> : '–'}</dd></div>
        <div><dt>Available cash</dt><dd data-sum="cash">{money(summary?.availableCash)}</dd></div>
      </dl>
      {summary && summary.unpricedPositions > 0 && <p>{summary.unpricedPositions} positions have no price and are not in these sums.</p>}
      {portfolio && heard && <Positions positions={portfolio.positions} heard={heard} />}
    </>
  )
}

const shownAtFirst = 100

function Positions({ positions, heard }: { positions: ReadonlyMap<string, Position>; heard: Heard }) {
  const [all, setAll] = useState(false)
  const sorted = [...positions.values()].sort((a, b) => Number(b.valuation?.value ?? -1) - Number(a.valuation?.value ?? -1))
  const shown = all ? sorted : sorted.slice(0, shownAtFirst)
  return (
    <>
      <table className="positions">
        <caption className="unseen">Positions, the most valuable first</caption>
        <thead>
          <tr>
            <th scope="col">Position</th>
            <th scope="col" className="figure wide">Shares</th>
            <th scope="col" className="figure wide">Paid</th>
            <th scope="col" className="figure wide">Price</th>
            <th scope="col" className="figure">Value</th>
            <th scope="col" className="figure">Profit and loss</th>
          </tr>
        </thead>
        <tbody>{shown.map(position => <Row key={position.id} position={position} heard={heard} />)}</tbody>
      </table>
      {shown.length < sorted.length && <button type="button" onClick={() => setAll(true)}>All {sorted.length} positions</button>}
    </>
  )
}

function Row({ position, heard }: { position: Position; heard: Heard }) {
  const { id, marketId, outcome, size, avgPrice, market, token, valuation } = position
  const name = market?.question ?? marketId
  const stale = useStale(valuation ? { ...heard, freshness: valuation.freshness } : undefined)
  const figure = stale ? 'figure stale' : 'figure'
  return (
    <tr data-position={id} data-stale={stale}>
      <th scope="row">
        {token ? <a href={tokenPath(marketId, token.tokenId)}>{name}</a> : name}
        <span className="detail">{outcome}<span className="narrow"> · {count(size)} {valuation && `at ${percent(valuation.price)}`}</span></span>
      </th>
      <td className="figure wide">{count(size)}</td>
      <td className="figure wide">{avgPrice ? percent(avgPrice) : '–'}</td>
      <td className={`${figure} wide`}>{valuation ? percent(valuation.price) : '–'}</td>
      <td className={figure} data-value={valuation?.value} title={stale ? 'Stale' : undefined}>
        {money(valuation?.value)}{stale && <span className="unseen"> stale</span>}
      </td>
      <td className={figure}>
        {valuation?.unrealizedPnl ? <Gain amount={valuation.unrealizedPnl} /> : '–'}
        {valuation?.unrealizedPnlPercent && <span className="detail">{gain(valuation.unrealizedPnlPercent)}%</span>}
      </td>
    </tr>
  )
}

const Gain = ({ amount }: { amount: string }) => <Change by={Number(amount)} words={['profit', 'loss', '']}>{gain(amount)}</Change>
