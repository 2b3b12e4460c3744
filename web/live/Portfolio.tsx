// A wallet: its sums, and tabs with positions, orders, trades, history and profit. Values change live with the prices.
import { useEffect, useMemo, useState } from 'react'
import { applyPortfolio } from '../kit/lists'
import { PortfolioDocument, type PortfolioSubscription, type PortfolioSubscriptionVariables } from './__generated__/operations'
import { Change } from './Change'
import { useConnection, useLink } from './connection'
import { reason, useMoney } from './format'
import { Freshness, useStale } from './Freshness'
import { isLasting, useLive } from './live'
import { Orders } from './Orders'
import { isSettled, Positions, type Position } from './Positions'
import { useDays } from './prices'
import { Profit } from './Profit'
import { useTitle } from './route'
import { Source } from './Source'
import { WalletHistory, WalletTrades } from './WalletPages'

type Update = PortfolioSubscription['portfolioChanged']

interface State {
  positions: Position[]
  summary: Update['summary']
  session: number
}

const tabs = ['Positions', 'Orders', 'Trades', 'History', 'Profit'] as const

interface Props {
  address: string
  /** Whether the venue serves the cash of accounts. */
  cash: boolean
  onClose: () => void
  /** Is called with the error code when the server refuses the credentials or the address. */
  onRefused: (code: string) => void
}

export function Portfolio({ address, cash, onClose, onRefused }: Props) {
  const { link } = useConnection()
  const { state } = useLink()
  const [tab, setTab] = useState<(typeof tabs)[number]>('Positions')
  useTitle('Portfolio')
  const { data: portfolio, error, ended } = useLive<PortfolioSubscription, State, PortfolioSubscriptionVariables>(
    { query: PortfolioDocument, variables: { address, cash } },
    (before, { portfolioChanged: event }) => ({ positions: applyPortfolio(before?.positions ?? [], event), summary: event.summary, session: link().session }),
  )
  const refused = state === 'refused' ? 'UNAUTHENTICATED' : !portfolio && isLasting(error) ? String(error!.graphQLErrors[0]!.extensions.code) : ''
  useEffect(() => {
    if (refused) onRefused(refused)
  }, [refused])
  const heard = portfolio && { freshness: portfolio.summary.freshness, session: portfolio.session, ended }
  return (
    <>
      <div className="title">
        <h1 tabIndex={-1}>Portfolio</h1>
        <Source of="Portfolio" document={PortfolioDocument} variables={{ address, cash }} />
        <button type="button" onClick={onClose}>Close the wallet</button>
      </div>
      <p className="crumbs"><code>{address}</code> <Freshness heard={heard} /></p>
      {error && !refused && <p role="alert">{reason(error)}</p>}
      <Sums summary={portfolio?.summary} positions={portfolio?.positions ?? []} cash={cash} stale={useStale(heard)} />
      <div className="chips tabs" role="group" aria-label="Lists of the wallet">
        {tabs.map(name => <button key={name} type="button" aria-pressed={name === tab} onClick={() => setTab(name)}>{name}</button>)}
      </div>
      {tab === 'Positions' && portfolio && heard && <Positions positions={portfolio.positions} heard={heard} />}
      {tab === 'Orders' && <Orders address={address} />}
      {tab === 'Trades' && <WalletTrades address={address} />}
      {tab === 'History' && <WalletHistory address={address} />}
      {tab === 'Profit' && portfolio && <Profit address={address} positions={portfolio.positions} summary={portfolio.summary} />}
    </>
  )
}

interface SumsProps {
  summary: Update['summary'] | undefined
  positions: readonly Position[]
  cash: boolean
  stale: boolean
}

function Sums({ summary, positions, cash, stale }: SumsProps) {
  const { money, cell } = useMoney()
  const reserved = summary && inOrders(summary)
  return (
    <>
      <dl className={stale ? 'sums stale' : 'sums'} data-as-of={summary?.freshness.asOf ?? summary?.freshness.receivedAt}>
        {cash && <div><dt>Total value</dt><dd data-sum="total">{money(summary?.totalValue)}</dd></div>}
        <div><dt>Positions</dt><dd data-sum="positions">{money(summary?.positionsValue)}</dd></div>
        <div><dt>Profit and loss</dt><dd>
          <span data-sum="pnl">{summary?.unrealizedPnl ? <Gain amount={summary.unrealizedPnl} /> : '–'}</span>
          {summary?.costBasis != null && <span className="detail">on a cost of {cell.money(summary.costBasis)}</span>}
          <LastDay positions={positions} />
        </dd></div>
        {cash && <div><dt>Available cash</dt><dd data-sum="cash">{money(summary?.availableCash)}{reserved && Number(reserved) !== 0 && <span className="detail">and {cell.money(reserved)} in orders</span>}</dd></div>}
      </dl>
      {summary && summary.unpricedPositions > 0 && <p>{summary.unpricedPositions} positions have no price and are not in these sums.</p>}
    </>
  )
}

/** The cash that orders reserve, rounded so that the sums on the page add up: total = positions + available + in orders. */
function inOrders({ totalValue, positionsValue, availableCash }: Update['summary']): string | undefined {
  if (totalValue == null || availableCash == null) return undefined
  const hundredths = (sum: string) => Math.round(100 * Number(sum))
  return ((hundredths(totalValue) - hundredths(positionsValue) - hundredths(availableCash)) / 100).toFixed(2)
}

/** The number of positions whose last day is read. At some venues each costs a call. */
const followed = 25

/** What the last 24 hours changed in the value of the largest open positions. */
function LastDay({ positions }: { positions: readonly Position[] }) {
  const open = useMemo(() => {
    const value = (position: Position) => Number(position.valuation?.value ?? 0)
    return positions.filter(position => position.token && value(position) > 0 && !isSettled(position)).toSorted((a, b) => value(b) - value(a))
  }, [positions])
  const [largest, setLargest] = useState<readonly string[]>([])
  const known = positions.length > 0
  useEffect(() => setLargest(open.slice(0, followed).map(({ token }) => token!.tokenId)), [known]) // prices change the order all the time
  const days = useDays([...largest])
  let sum = 0
  let counted = 0
  for (const { size, token, valuation } of open) {
    const day = days[token!.tokenId]
    if (!day) continue
    sum += Number(size) * (Number(valuation!.price) - day.before)
    counted++
  }
  if (counted === 0) return null
  return <span className="detail" data-sum="day"><Gain cell amount={String(sum)} /> in 24 h{counted < open.length && ` (largest\u00a0${counted}\u00a0of\u00a0${open.length})`}</span>
}

/** A profit or loss. cell leaves out the code of the currency, as in useMoney. */
export function Gain({ amount, cell = false }: { amount: string; cell?: boolean }) {
  const money = useMoney()
  const { gain } = cell ? money.cell : money
  return <Change by={Number(amount)} words={['profit', 'loss', '']}>{gain(amount)}</Change>
}
