// The last 24 hours of a price as a small chart. Screen readers skip the chart, because the figures beside it say the same.
import { useNow } from './clock'
import type { Point } from './prices'

const width = 120
const height = 32
const margin = 3

export function Sparkline({ points, by = 0 }: { points: Point[]; by: number | undefined }) {
  const now = useNow()
  const first = points[0]
  const last = points.at(-1)
  if (!first || !last) return <svg className="sparkline" viewBox={`0 0 ${width} ${height}`} aria-hidden="true" />
  const from = Math.min(first.time, now - 1)
  const prices = points.map(p => p.price)
  const low = Math.min(...prices)
  const span = Math.max(...prices) - low
  const x = (time: number) => (width - margin) * ((Math.min(time, now) - from) / (now - from))
  const y = (price: number) => (span === 0 ? height / 2 : height - margin - (height - 2 * margin) * ((price - low) / span))
  // The line is horizontal between two points, because a price is valid until the next price.
  const steps = points.map((p, i) => (i === 0 ? `M${x(p.time)} ${y(p.price)}` : `H${x(p.time)}V${y(p.price)}`)).join('')
  const which = by > 0 ? ' up' : by < 0 ? ' down' : ''
  return (
    <svg className={`sparkline${which}`} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      <path d={`${steps}H${width - margin}`} />
      <circle cx={width - margin} cy={y(last.price)} r="2.5" />
    </svg>
  )
}
