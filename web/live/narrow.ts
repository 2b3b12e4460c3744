// The width of the page, for what styles alone cannot move.
import { useSyncExternalStore } from 'react'

const narrow = matchMedia('(max-width: 48rem)')

function onChange(changed: () => void) {
  narrow.addEventListener('change', changed)
  return () => narrow.removeEventListener('change', changed)
}

/** Whether the page has the width of a phone. It is the same width as in index.css. */
export const useNarrow = () => useSyncExternalStore(onChange, () => narrow.matches)
