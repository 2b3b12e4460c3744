// Positions, sorted by any column. However many rows there are, the document contains only the rows in view.
import { useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import type { PortfolioSubscription } from './__generated__/operations'
import { cents, shares, signed, sizeDecimals, useMoney } from './format'
import { useStale, type Heard } from './Freshness'
import { colourOf, labelOf } from './names'
import { Gain } from './Portfolio'
import { tokenPath } from './route'

export type Position = PortfolioSubscription['portfolioChanged']['changed'][number]

/** The value that each column sorts by. */
const columns = {
  Position: (p: Position) => p.market?.question ?? p.marketId,
  Shares: (p: Position) => Number(p.size),
  Paid: (p: Position) => Number(p.avgPrice ?? -1),
  Price: (p: Position) => Number(p.valuation?.price ?? -1),
  Value: (p: Position) => Number(p.valuation?.value ?? -1),
  'Profit and loss': (p: Position) => Number(p.valuation?.unrealizedPnl ?? 0),
}

type Column = keyof typeof columns

/** The columns of sums, whose heads name the currency. */
const sums: readonly Column[] = ['Value', 'Profit and loss']

const wide: readonly Column[] = ['Shares', 'Paid', 'Price']

export const isSettled = ({ market }: Position) => market?.status === 'RESOLVED' || market?.status === 'CANCELLED'

/** Sorts positions by a column. Open positions come before settled positions in both directions. */
function sorted(positions: readonly Position[], column: Column, ascending: boolean): Position[] {
  const value = columns[column]
  return positions.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)]
    const order = typeof x === 'string' ? x.localeCompare(String(y)) : x - Number(y)
    return Number(isSettled(a)) - Number(isSettled(b)) || (ascending ? order : -order)
  })
}

export function Positions({ positions, heard }: { positions: readonly Position[]; heard: Heard }) {
  const { headed } = useMoney()
  const [{ column, ascending }, setSort] = useState<{ column: Column; ascending: boolean }>({ column: 'Value', ascending: false })
  const rows = useMemo(() => sorted(positions, column, ascending), [positions, column, ascending])
  const table = useRef<HTMLTableElement>(null)
  const [margin, setMargin] = useState(0)
  const [height, setHeight] = useState(40)
  useLayoutEffect(() => {
    setMargin(table.current!.tBodies[0]!.getBoundingClientRect().top + scrollY)
    setHeight(table.current!.querySelector('tbody tr[data-position]')?.getBoundingClientRect().height ?? 40)
  }, [])
  const virtual = useWindowVirtualizer({ count: rows.length, estimateSize: () => height, overscan: 8, scrollMargin: margin, getItemKey: i => rows[i]!.id })
  const items = virtual.getVirtualItems()
  const above = items[0] ? items[0].start - margin : 0
  const below = virtual.getTotalSize() - (items.at(-1) ? items.at(-1)!.end - margin : 0)
  return (
    <table ref={table} className="positions" aria-rowcount={rows.length + 1}>
      <caption className="unseen">{rows.length} positions</caption>
      <thead>
        <tr>
          {(Object.keys(columns) as Column[]).map(name => (
            <th key={name} scope="col" className={name === 'Position' ? undefined : wide.includes(name) ? 'figure wide' : 'figure'} aria-sort={name === column ? (ascending ? 'ascending' : 'descending') : undefined}>
              <button type="button" onClick={() => setSort({ column: name, ascending: name === column ? !ascending : name === 'Position' })}>
                {sums.includes(name) ? headed(name) : name}<span aria-hidden="true">{name === column ? (ascending ? '\u00a0↑' : '\u00a0↓') : ''}</span>
              </button>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {above > 0 && <tr aria-hidden="true" className="gap" style={{ height: above }}><td /></tr>}
        {items.map(({ index }) => <Row key={rows[index]!.id} index={index} position={rows[index]!} heard={heard} />)}
        {below > 0 && <tr aria-hidden="true" className="gap" style={{ height: below }}><td /></tr>}
      </tbody>
    </table>
  )
}

function Row({ index, position, heard }: { index: number; position: Position; heard: Heard }) {
  const { money } = useMoney().cell
  const { id, marketId, outcome, outcomeKind, size, avgPrice, market, token, valuation, redeemable } = position
  const name = market?.question ?? marketId
  const stale = useStale(valuation ? { ...heard, freshness: valuation.freshness } : undefined) && !isSettled(position)
  const label = market ? labelOf(market) : undefined
  const figure = stale ? 'figure stale' : 'figure'
  return (
    <tr data-position={id} data-stale={stale} aria-rowindex={index + 2} className={isSettled(position) ? 'settled' : undefined}>
      <th scope="row">
        <span className="cell">
          {token ? <a href={tokenPath(marketId, token.tokenId)} title={name}>{name}</a> : name}
          {label && <span className="tag label">{label}</span>}
          <span className={`tag outcome ${colourOf(outcomeKind)}`}>{outcome}</span>
          {redeemable && <span className="tag won">Redeem</span>}
          {isSettled(position) && !redeemable && <span className="tag">{market?.status === 'CANCELLED' ? 'Cancelled' : redeemable === false ? 'Lost' : 'Resolved'}</span>}
        </span>
        <span className="detail narrow"><strong className={colourOf(outcomeKind)}>{outcome}</strong> {shares(size, sizeDecimals([size]))}{valuation && ` at ${cents(valuation.price)} now`}</span>
      </th>
      <td className="figure wide">{shares(size)}</td>
      <td className="figure wide">{avgPrice ? cents(avgPrice) : '–'}</td>
      <td className={`${figure} wide`}>{valuation ? cents(valuation.price) : '–'}</td>
      <td className={figure} data-value={valuation?.value} title={stale ? 'Stale' : undefined}>
        {money(valuation?.value)}{stale && <span className="unseen"> stale</span>}
      </td>
      <td className={figure}>
        {valuation?.unrealizedPnl ? <Gain cell amount={valuation.unrealizedPnl} /> : '–'}
        {valuation?.unrealizedPnlPercent && <span className="percent wide">{signed(valuation.unrealizedPnlPercent)}%</span>}
      </td>
    </tr>
  )
}
