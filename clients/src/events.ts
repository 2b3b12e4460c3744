// Reads streams of events one by one, whichever client they come from.
import type { Observable } from 'rxjs'

/** Makes an async iterator of an observable. It loses no event that arrives between two reads. */
export async function* iterate<T>(observable: Observable<T>): AsyncGenerator<T, void> {
  const waiting: T[] = []
  let end: { reason?: unknown } | undefined
  let wake = () => {}
  const subscription = observable.subscribe({
    next: value => { waiting.push(value); wake() },
    error: reason => { end = { reason }; wake() },
    complete: () => { end = {}; wake() },
  })
  try {
    for (;;) {
      while (waiting.length) yield waiting.shift()!
      if (end) {
        if ('reason' in end) throw end.reason
        return
      }
      await new Promise<void>(resolve => { wake = resolve })
    }
  } finally {
    subscription.unsubscribe()
  }
}

/** The longest wait for an event in milliseconds. An event that takes longer means a failure. */
const patience = 30_000

/** Takes the next event. */
export async function take<T>(events: AsyncIterator<T>): Promise<T> {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_, reject) => { timer = setTimeout(() => reject(new Error('no event came')), patience) })
  const next = await Promise.race([events.next(), late]).finally(() => clearTimeout(timer))
  if (next.done) throw new Error('the subscription has ended')
  return next.value
}

/** Takes events until one fits, and returns that event. It fails if none of the first 300 events fits. */
export async function until<T>(events: AsyncIterator<T>, fits: (event: T) => boolean): Promise<T> {
  for (let n = 1; ; n++) {
    const event = await take(events)
    if (fits(event)) return event
    if (n === 300) throw new Error(`no event of ${n} fits; the last is ${JSON.stringify(event)}`)
  }
}
