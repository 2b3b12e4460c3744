// Applies the events of portfolioChanged, ordersChanged, tradesAdded and userTradesAdded to lists. Each function returns a new list
// and does not modify the old list. The objects in a normalised cache need no such code, because events update them by their ids.

export type UpdateReason = 'INITIAL' | 'CHANGE' | 'FRESHNESS' | 'RESYNC'

/** An object with a global id. */
export interface Identified { readonly id: string }

export interface PortfolioEvent<P extends Identified> {
  readonly reason: UpdateReason
  readonly changed: readonly P[]
  readonly closedPositionIds: readonly string[]
}

export interface OrdersEvent<O extends Identified> {
  readonly reason: UpdateReason
  readonly changed: readonly O[]
  readonly closedOrderIds: readonly string[]
}

/** A trade. Without timestamp, a list of trades is not sorted by time. */
export interface Timed extends Identified { readonly timestamp?: string }

export interface TradesEvent<T extends Identified> {
  readonly reason: UpdateReason
  readonly trades: readonly T[]
  readonly gap: boolean
}

/**
 * Returns all positions of the wallet after an event. positions must contain all positions before the event, not one page. The
 * result lacks closed positions and contains new and changed positions. INITIAL and RESYNC replace the whole list. compare sorts
 * the result. Without compare, new positions come last. The length of the result is the new totalCount.
 */
export function applyPortfolio<P extends Identified>(positions: readonly P[], event: PortfolioEvent<P>, compare?: (a: P, b: P) => number): P[] {
  return apply(positions, event.reason, event.changed, event.closedPositionIds, compare)
}

/** Returns the open orders after an event, in the same way as applyPortfolio. */
export function applyOrders<O extends Identified>(orders: readonly O[], event: OrdersEvent<O>, compare?: (a: O, b: O) => number): O[] {
  return apply(orders, event.reason, event.changed, event.closedOrderIds, compare)
}

/**
 * Returns the newest trades after an event, newest first, at most limit of them. No trade appears twice. All events add trades,
 * except INITIAL, which replaces the list. The trades of a RESYNC can be older than trades of the list, so select timestamp: with it,
 * the result is sorted by time. If event.gap is true, trades before the event's trades may be missing. Then the result has only the
 * event's trades: query the list again.
 */
export function applyTrades<T extends Timed>(trades: readonly T[], event: TradesEvent<T>, limit = 100): T[] {
  const added = new Map([...event.trades].reverse().map(trade => [trade.id, trade]))
  const before = event.reason === 'INITIAL' || event.gap ? [] : trades.filter(({ id }) => !added.has(id))
  const newer = (a: T, b: T) => (a.timestamp && b.timestamp ? Date.parse(b.timestamp) - Date.parse(a.timestamp) : 0)
  return [...added.values(), ...before].sort(newer).slice(0, limit)
}

/** Reports whether an event has the whole state. */
export const replaces = (reason: UpdateReason): boolean => reason === 'INITIAL' || reason === 'RESYNC'

function apply<T extends Identified>(
  list: readonly T[], reason: UpdateReason, changed: readonly T[], closed: readonly string[], compare: ((a: T, b: T) => number) | undefined,
): T[] {
  const byId = new Map(replaces(reason) ? [] : list.map(item => [item.id, item] as const))
  for (const item of changed) byId.set(item.id, item)
  for (const id of closed) byId.delete(id)
  const items = [...byId.values()]
  return compare ? items.sort(compare) : items
}
