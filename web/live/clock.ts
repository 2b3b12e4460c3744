// The present time, for components that show an age. All of them share one timer.
import { useSyncExternalStore } from 'react'

let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined
const listeners = new Set<() => void>()

function onTick(ticked: () => void) {
  listeners.add(ticked)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const ticked of listeners) ticked()
  }, 1000)
  return () => {
    listeners.delete(ticked)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The present time in milliseconds, updated each second. */
export const useNow = () => useSyncExternalStore(onTick, () => now)
