// A live price. It says what it is exactly in data-price and data-as-of.
import { useStale } from './Freshness'
import { percent } from './format'
import type { Quote } from './prices'

export function Price({ quote }: { quote: Quote | undefined }) {
  const stale = useStale(quote)
  if (!quote) return <Waiting />
  // A new key for each price starts the animation that shows that it has moved.
  const previous = quote.heard.at(-2)?.price
  const moved = previous === undefined ? '' : Number(quote.price) > previous ? ' rose' : Number(quote.price) < previous ? ' fell' : ''
  return (
    <span
      key={quote.price} className={`price${moved}${stale ? ' stale' : ''}`}
      data-price={quote.price} data-as-of={quote.freshness.asOf} data-stale={stale}
    >
      {percent(quote.price)}
    </span>
  )
}

/** Stands where a figure will be. */
export const Waiting = () => (
  <span className="waiting">
    <span className="unseen">not known yet</span>
  </span>
)
