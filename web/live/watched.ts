// The markets that the user watches, in the browser's storage. Every tab of the browser shows the same list.
import { useSyncExternalStore } from 'react'

const key = 'oddsgraph:watchlist'
const most = 100
const listeners = new Set<() => void>()

let text = ''
let ids: readonly string[] = []

/** The ids, the latest first; the same array until they change. */
function read(): readonly string[] {
  const now = localStorage.getItem(key) ?? '[]'
  if (now !== text) {
    text = now
    try {
      ids = (JSON.parse(now) as unknown[]).filter(id => typeof id === 'string').slice(0, most)
    } catch {
      ids = []
    }
  }
  return ids
}

function onChange(changed: () => void) {
  listeners.add(changed)
  addEventListener('storage', changed)
  return () => {
    listeners.delete(changed)
    removeEventListener('storage', changed)
  }
}

export const useWatchlist = () => useSyncExternalStore(onChange, read)

/** Adds a market to the list, or removes it. */
export function toggle(marketId: string) {
  const before = read()
  const after = before.includes(marketId) ? before.filter(id => id !== marketId) : [marketId, ...before].slice(0, most)
  localStorage.setItem(key, JSON.stringify(after))
  for (const changed of listeners) changed()
}
