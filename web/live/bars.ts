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

/** The start of the step that contains an instant, in local time, because the chart shows every time as UTC. */
export function stepOf(instant: string | number, step = tenMinutes): UTCTimestamp {
  const date = new Date(instant)
  return Math.floor((date.getTime() / 1000 - date.getTimezoneOffset() * 60) / step) * step as UTCTimestamp
}

/** Returns a bar with the value of `after` for each step after `after` and before the time `until`: the price did not change. */
export function* still(after: Bar, until: number, step = tenMinutes): Generator<Bar> {
  for (let time = after.time + step; time < until; time += step) yield { time: time as UTCTimestamp, value: after.value }
}

/**
 * Returns one bar for each step, from the step of the first point to the last step before `until`, and for later steps with points.
 * The value of a bar is the last price in its step. A step without a price has the value of the previous bar.
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

/** The lengths of a step from which resolution chooses, in seconds. */
const lengths = [60, 300, 600, 1800, 3600, 4 * 3600, 86_400]

/** The number of points from which their distances tell a resolution. */
const enough = 24

/**
 * Returns the length of a step that suits all of the points: at least `least` seconds, and not shorter than the usual distance of two
 * points in most of the range. Venues send recent days in finer points. With the finest step, the older part of the line would be flat
 * between its points, and its bars of volume would be taller.
 */
export function resolution(points: readonly Point[], least: number): number {
  if (points.length < enough) return least
  const times = points.map(({ timestamp }) => Date.parse(timestamp) / 1000).sort((a, b) => a - b)
  const gaps = times.slice(1).map((time, i) => time - times[i]!)
  const whole = times.at(-1)! - times[0]!
  const fits = (step: number) => gaps.reduce((sum, gap) => (gap > 1.5 * step ? sum + gap : sum), 0) < 0.2 * whole
  return lengths.find(step => step >= least && fits(step)) ?? least
}

/** Returns the distance of the highest from the lowest of several lines, at each time that all of them have. */
export function distances(lines: readonly (readonly Bar[])[]): Bar[] {
  const [first = [], ...others] = lines
  const values = others.map(line => new Map(line.map(({ time, value }) => [time, value])))
  return first.flatMap(({ time, value }) => {
    const all = [value, ...values.flatMap(at => at.get(time) ?? [])]
    return all.length === lines.length ? [{ time, value: Math.max(...all) - Math.min(...all) }] : []
  })
}

/** Returns the traded volume of each step that has points with a volume. */
export function volumes(points: readonly Point[], step = tenMinutes): Bar[] {
  const sums = new Map<UTCTimestamp, number>()
  for (const { timestamp, volume } of points) {
    const time = stepOf(timestamp, step)
    if (volume != null) sums.set(time, (sums.get(time) ?? 0) + Number(volume))
  }
  return [...sums].sort(([a], [b]) => a - b).map(([time, value]) => ({ time, value }))
}

/**
 * Returns the points of the last `seconds` seconds. If there are earlier points, the first result is a point at the start of this
 * period with the price of the last earlier point.
 */
export function since<P extends Point>(points: readonly P[], seconds: number, now: number): P[] {
  const start = now - seconds * 1000
  const inside = points.filter(({ timestamp }) => Date.parse(timestamp) >= start)
  const before = points.findLast(({ timestamp }) => Date.parse(timestamp) < start)
  return before ? [{ ...before, timestamp: new Date(start).toISOString(), volume: null }, ...inside] : inside
}
