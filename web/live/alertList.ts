// Price alerts, in the browser's storage.
import { stored } from './stored'

export interface Alert {
  marketId: string
  tokenId: string
  /** The market and its outcome in words. */
  name: string
  /** The price from 0 to 1 that triggers and ends the alert. */
  at: number
  /** Whether the price has to rise to reach `at`. */
  above: boolean
}

const isAlert = (item: unknown): item is Alert => {
  const { marketId, tokenId, name, at, above } = (item ?? {}) as Partial<Alert>
  return [marketId, tokenId, name].every(text => typeof text === 'string') && typeof at === 'number' && typeof above === 'boolean'
}

const list = stored('oddsgraph:alerts', 50, isAlert)

export const useAlerts = list.use

const same = (a: Alert) => (b: Alert) => a.tokenId === b.tokenId && a.at === b.at && a.above === b.above

export const add = (alert: Alert) => list.write([alert, ...list.read().filter(other => !same(alert)(other))])

export const remove = (alert: Alert) => list.write(list.read().filter(other => !same(alert)(other)))

/** Whether a price has reached the price of the alert. */
export const isReached = ({ at, above }: Alert, price: number) => (above ? price >= at : price <= at)
