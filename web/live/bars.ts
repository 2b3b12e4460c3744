// Prices in steps of equal length. The chart puts its points at equal distances, so its time axis is correct only if the points are
// equally far apart in time.
import type { UTCTimestamp } from 'lightweight-charts'

export interface Bar {
  time: UTCTimestamp
  value: number
}

interface Point {
  timestamp: string
  price: string
  volume?: string | null
}

/** Ten minutes, in seconds. */
const tenMinutes = 600

/** The step that an instant is in, in local time: the chart knows no time zones and writes every time as UTC. */
export function stepOf(instant: string | number, step = tenMinutes): UTCTimestamp {
  const date = new Date(instant)
  return Math.floor((date.getTime() / 1000 - date.getTimezoneOffset() * 60) / step) * step as UTCTimestamp
}

/**
 * Returns a bar with the value of `after` for each step between `after` and the time `until`, in which the price did not change.
 */
export function* still(after: Bar, until: number, step = tenMinutes): Generator<Bar> {
  for (let time = after.time + step; time < until; time += step) yield { time: time as UTCTimestamp, value: after.value }
}

/**
 * Returns one bar for each step from that of the first point up to the time `until`. Its value is the last price of the step, or of
 * the last step before that has a price.
 */
export function bars(points: readonly Point[], until: number, step = tenMinutes): Bar[] {
  const all: Bar[] = []
  const byStep = new Map(points.map(({ timestamp, price }) => [stepOf(timestamp, step), Number(price)]))
  for (const [time, value] of [...byStep].sort(([a], [b]) => a - b)) {
    const last = all.at(-1)
    if (last) all.push(...still(last, time, step))
    all.push({ time, value })
  }
  const last = all.at(-1)
  if (last) all.push(...still(last, until, step))
  return all
}

/** The traded volume of each step that has one. */
export function volumes(points: readonly Point[], step = tenMinutes): Bar[] {
  const sums = new Map<UTCTimestamp, number>()
  for (const { timestamp, volume } of points) {
    const time = stepOf(timestamp, step)
    if (volume != null) sums.set(time, (sums.get(time) ?? 0) + Number(volume))
  }
  return [...sums].sort(([a], [b]) => a - b).map(([time, value]) => ({ time, value }))
}

/**
 * Returns the points of the last `seconds` seconds. If there is an earlier point, its price comes first, at the start of the
 * period.
 */
export function since<P extends Point>(points: readonly P[], seconds: number, now: number): P[] {
  const start = now - seconds * 1000
  const inside = points.filter(({ timestamp }) => Date.parse(timestamp) >= start)
  const before = points.findLast(({ timestamp }) => Date.parse(timestamp) < start)
  return before ? [{ ...before, timestamp: new Date(start).toISOString(), volume: null }, ...inside] : inside
}
