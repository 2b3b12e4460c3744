// The profit of a wallet over time, and the parts of the wallet's value.
import { useEffect, useMemo, useState } from 'react'
import { useQuery } from 'urql'
import { ProfitRecordsDocument, type PortfolioSubscription } from './__generated__/operations'
import { date, reason, useMoney } from './format'
import { useAgain } from './live'
import type { Position } from './Positions'
import { realised, type Entry, type Step } from './realised'
import { Source } from './Source'

/** The maximum number of pages that are read. A page has 100 records. */
const most = 3

interface Props {
  address: string
  positions: readonly Position[]
  summary: PortfolioSubscription['portfolioChanged']['summary']
}

export function Profit({ address, positions, summary }: Props) {
  const [after, setAfter] = useState<string | null>(null)
  const [pages, setPages] = useState<readonly (readonly Entry[])[]>([])
  const variables = { address, after }
  const [{ data, error }, ask] = useQuery({ query: ProfitRecordsDocument, variables })
  useAgain(error, ask)
  const read = data?.user?.history
  useEffect(() => {
    if (!read) return
    setPages(pages => [...pages, read.nodes])
    if (read.pageInfo.hasNextPage && pages.length + 1 < most) setAfter(read.pageInfo.endCursor ?? null)
  }, [read])
  const { steps, unknown } = useMemo(() => {
    const records = [...new Map(pages.flat().map(record => [record.id, record])).values()]
    const averages = new Map(positions.flatMap(({ token, avgPrice }) => (token && avgPrice ? [[token.tokenId, Number(avgPrice)] as const] : [])))
    return realised(records, averages)
  }, [pages, positions])
  const { gain } = useMoney()
  const total = steps.at(-1)?.profit ?? 0
  return (
    <div className="pair">
      <section className="panel" aria-labelledby="profit">
        <h2 id="profit">Realised profit{steps[0] && `, since ${date(new Date(steps[0].time).toISOString())}`} <Source of="Profit" document={ProfitRecordsDocument} variables={variables} /></h2>
        {error && <p role="alert">{reason(error)}</p>}
        <Line steps={steps} words={steps.length > 0 ? `Realised profit of ${gain(total.toFixed(2))}` : 'The records are being read.'} />
        <p className="detail">
          {steps.length > 0 && <>Realised: <strong data-profit={total}>{gain(total.toFixed(2))}</strong>. </>}
          {summary.unrealizedPnl && <>Open positions: {gain(summary.unrealizedPnl)}. </>}
          {unknown > 0 && <>Records left out because their amount or cost is not known: {unknown}.</>}
        </p>
      </section>
      <Allocation positions={positions} summary={summary} />
    </div>
  )
}

const width = 600
const height = 200

function Line({ steps, words }: { steps: readonly Step[]; words: string }) {
  const { gain } = useMoney()
  const [first, last] = [steps[0], steps.at(-1)]
  const profits = [0, ...steps.map(({ profit }) => profit)]
  const [low, high] = [Math.min(...profits), Math.max(...profits)]
  const y = (profit: number) => 8 + (height - 16) * (1 - (profit - low) / (high - low || 1))
  const x = (time: number) => (first && last && last.time > first.time ? (width * (time - first.time)) / (last.time - first.time) : 0)
  return (
    <div className="line" role="img" aria-label={words}>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
        <path className="zero" d={`M0 ${y(0)}H${width}`} />
        <path className={last && last.profit < 0 ? 'fell' : 'rose'} d={first && `M0 ${y(0)}${steps.map(({ time, profit }) => `H${x(time)}V${y(profit)}`).join('')}`} />
      </svg>
      {first && <><span>{gain(high.toFixed(2))}</span><span>{gain(low.toFixed(2))}</span></>}
    </div>
  )
}

function Allocation({ positions, summary }: Omit<Props, 'address'>) {
  const { compactMoney } = useMoney()
  const sums = new Map<string, number>([['Cash', Number(summary.availableCash ?? 0)]])
  for (const { market, valuation } of positions) {
    const name = market?.category ?? 'Other'
    sums.set(name, (sums.get(name) ?? 0) + Number(valuation?.value ?? 0))
  }
  const total = [...sums.values()].reduce((sum, value) => sum + value, 0)
  return (
    <section className="panel allocation" aria-labelledby="allocation">
      <h2 id="allocation">Allocation</h2>
      {[...sums].filter(([, value]) => value > 0).sort(([, a], [, b]) => b - a).map(([name, value]) => (
        <p key={name} className="bar-row" style={{ '--share': `${(100 * value) / total}%` } as object}>
          <span>{name}</span><span className="figure">{compactMoney(String(value))} · {((100 * value) / total).toFixed(1)}%</span>
        </p>
      ))}
    </section>
  )
}
