// The time, for whatever shows how old something is: one timer for all of them.
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

/** The present time in milliseconds, anew each second. */
export const useNow = () => useSyncExternalStore(onTick, () => now)
