// Prices in steps of equal length. The chart's axis counts points, so that it is true only if all are as far apart.
import type { UTCTimestamp } from 'lightweight-charts'

/** The length of a step in seconds. */
const step = 600

export interface Bar {
  time: UTCTimestamp
  value: number
}

/** The step that an instant is in, in local time: the chart knows no time zones and writes every time as UTC. */
export function stepOf(instant: string | number): UTCTimestamp {
  const date = new Date(instant)
  return Math.floor((date.getTime() / 1000 - date.getTimezoneOffset() * 60) / step) * step as UTCTimestamp
}

/** The bars of the steps after one until another begins: nothing has changed there. */
export function* still(after: Bar, until: number): Generator<Bar> {
  for (let time = after.time + step; time < until; time += step) yield { time: time as UTCTimestamp, value: after.value }
}

/** A bar for each step from the first point until another step begins, with the last price that was known in it. */
export function bars(points: readonly { timestamp: string; price: string }[], until: number): Bar[] {
  const all: Bar[] = []
  const byStep = new Map(points.map(({ timestamp, price }) => [stepOf(timestamp), Number(price)]))
  for (const [time, value] of [...byStep].sort(([a], [b]) => a - b)) {
    const last = all.at(-1)
    if (last) all.push(...still(last, time))
    all.push({ time, value })
  }
  const last = all.at(-1)
  if (last) all.push(...still(last, until))
  return all
}
