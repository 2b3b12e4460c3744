// The shares of a book up to each price, as two areas. Screen readers skip the areas, because the ladder has the same figures.
import type { Summed } from './levels'

const width = 300
const height = 56

export function Depth({ bids, asks }: { bids: Summed[]; asks: Summed[] }) {
  const prices = [...bids, ...asks].map(({ price }) => Number(price))
  const low = Math.min(...prices)
  const span = Math.max(...prices) - low
  const most = Math.max(bids.at(-1)?.total ?? 0, asks.at(-1)?.total ?? 0)
  const x = (price: string) => (width * (Number(price) - low)) / span
  const y = (total: number) => height - (height - 2) * (total / most)
  const area = (levels: Summed[]) => {
    const [first] = levels
    if (!first || span === 0) return ''
    const steps = levels.map(({ price, total }) => `H${x(price)}V${y(total)}`).join('')
    return `M${x(first.price)} ${height}${steps}V${height}Z`
  }
  return (
    <svg className="depth" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      <path className="bid" d={area(bids)} />
      <path className="ask" d={area(asks)} />
    </svg>
  )
}
