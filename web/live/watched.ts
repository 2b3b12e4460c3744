// The markets that the user watches, the latest first.
import { stored } from './stored'

const list = stored('oddsgraph:watchlist', 100, (id): id is string => typeof id === 'string')

export const useWatchlist = list.use

/** Adds a market to the list, or removes it. */
export function toggle(marketId: string) {
  const before = list.read()
  list.write(before.includes(marketId) ? before.filter(id => id !== marketId) : [marketId, ...before])
}
