// A live price. The attribute data-price has the price without rounding.
import { useStale } from './Freshness'
import { cents, exactCents } from './format'
import type { Quote } from './prices'

export function Price({ quote, exact = false }: { quote: Quote | undefined; exact?: boolean }) {
  const stale = useStale(quote)
  if (!quote) return <Waiting />
  // A new price changes the key, so React makes a new element and the animation of the change starts.
  const previous = quote.heard.at(-2)?.price
  const moved = previous === undefined ? '' : Number(quote.price) > previous ? ' rose' : Number(quote.price) < previous ? ' fell' : ''
  return (
    <span
      key={quote.price} className={`price${moved}${stale ? ' stale' : ''}`}
      data-price={quote.price} data-as-of={quote.freshness.asOf} data-stale={stale}
    >
      {exact ? exactCents(quote.price) : cents(quote.price)}
    </span>
  )
}

/** A placeholder for a figure that is not known yet. */
export const Waiting = () => (
  <span className="waiting">
    <span className="unseen">not known yet</span>
  </span>
)
