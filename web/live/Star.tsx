// Puts a market on the watchlist.
import { toggle, useWatchlist } from './watched'

export function Star({ marketId, name }: { marketId: string; name: string }) {
  const watched = useWatchlist().includes(marketId)
  return (
    <button type="button" className="star" aria-pressed={watched} aria-label={`Watch ${name}`} onClick={() => toggle(marketId)}>
      <span aria-hidden="true">{watched ? '★' : '☆'}</span>
    </button>
  )
}
