// Lists in the browser's storage. Every tab of the browser shows the same list.
import { useSyncExternalStore } from 'react'

export interface Stored<Item> {
  use: () => readonly Item[]
  read: () => readonly Item[]
  write: (items: readonly Item[]) => void
}

/** Returns the list under a key of the storage. It omits items that fits() does not accept, and all items after `most` items. */
export function stored<Item>(key: string, most: number, fits: (item: unknown) => item is Item): Stored<Item> {
  const listeners = new Set<() => void>()
  let text = ''
  let items: readonly Item[] = []
  const read = () => { // returns the same array until the list changes
    const now = localStorage.getItem(key) ?? '[]'
    if (now !== text) {
      text = now
      try {
        items = (JSON.parse(now) as unknown[]).filter(fits).slice(0, most)
      } catch {
        items = []
      }
    }
    return items
  }
  const onChange = (changed: () => void) => {
    listeners.add(changed)
    addEventListener('storage', changed)
    return () => {
      listeners.delete(changed)
      removeEventListener('storage', changed)
    }
  }
  return {
    read,
    use: () => useSyncExternalStore(onChange, read),
    write: items => {
      localStorage.setItem(key, JSON.stringify(items.slice(0, most)))
      for (const changed of listeners) changed()
    },
  }
}
