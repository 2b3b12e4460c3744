// The markets on the user's watchlist. The market that was added last comes first.
import { stored } from './stored'

const list = stored('oddsgraph:watchlist', 100, (id): id is string => typeof id === 'string')

export const useWatchlist = list.use

/** Adds a market to the list, or removes it if it is in the list. */
export function toggle(marketId: string) {
  const before = list.read()
  list.write(before.includes(marketId) ? before.filter(id => id !== marketId) : [marketId, ...before])
}
