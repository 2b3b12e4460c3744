// Applies events to the lists in the cache of Apollo Client. Apollo itself updates the objects of an event by their ids; these
// functions move, add and remove the rows of User.positions, User.orders and User.trades.
import type { InMemoryCache, Reference } from '@apollo/client'
import { compareDecimals, isDecimal } from './decimal.js'
import { replaces, type Identified, type OrdersEvent, type PortfolioEvent, type TradesEvent, type UpdateReason } from './lists.js'

/** The part of InMemoryCache that the functions use. */
export type ListCache = Pick<InMemoryCache, 'identify' | 'modify'>

/** A connection as the cache stores it. */
interface Connection {
  readonly edges?: readonly { readonly cursor?: string; readonly node?: Reference }[]
  readonly nodes?: readonly Reference[]
  readonly totalCount?: number | null
  readonly pageInfo?: { readonly hasNextPage?: boolean }
}

/** The details that Apollo passes to the modifier of a field. */
interface Details {
  readonly storeFieldName: string
  readonly DELETE: unknown
  readField(options: { fieldName: string; from: unknown }): unknown
}

interface Change {
  readonly reason: UpdateReason
  readonly changed: readonly Identified[]
  readonly closed: readonly string[]
}

/** The ids of all positions or orders of a user, computed from the events. Keys of the inner map: the field and the user's id. */
const known = new WeakMap<ListCache, Map<string, ReadonlySet<string>>>()

/**
 * Applies an event of portfolioChanged to every list of the user's positions in the cache. It removes closed positions from the
 * lists, adds new positions, keeps the lists sorted by their argument sort, and updates totalCount. A list that is not loaded to
 * its end does not get longer. For a new position, applyPortfolio removes lists with filters from the cache, so that Apollo sends
 * their queries again. It does so, too, with a list that is null because it could not be read. If User.portfolio is null, it becomes
 * the summary of the event. userId is the id of the User. Call applyPortfolio once for each event, in order.
 */
export function applyPortfolio(cache: ListCache, userId: string, event: PortfolioEvent<Identified> & { readonly summary?: Identified }): void {
  apply(cache, userId, 'positions', 'Position', { ...event, closed: event.closedPositionIds })
  const summary = event.summary && reference(cache, 'PortfolioSummary', event.summary.id)
  if (summary) modify(cache, userId, 'portfolio', (before, { storeFieldName }) => before ?? (storeFieldName === 'portfolio' ? summary : before))
}

/** Applies an event of ordersChanged to every list of the user's open orders, in the same way as applyPortfolio. */
export function applyOrders(cache: ListCache, userId: string, event: OrdersEvent<Identified>): void {
  apply(cache, userId, 'orders', 'Order', { ...event, closed: event.closedOrderIds })
}

/**
 * Applies an event of userTradesAdded to every list of the user's trades: new trades come first. If trades between a list and the
 * event may be missing, or if a list has filters, applyTrades removes the list from the cache, so that Apollo sends its query again.
 * Trades may be missing if event.gap is true, or if INITIAL has no trade of a list that is not empty.
 */
export function applyTrades(cache: ListCache, userId: string, event: TradesEvent<Identified>): void {
  if (event.trades.length === 0 && !event.gap) return
  const trades = event.trades.map(trade => reference(cache, 'Trade', trade.id))
  modifyLists(cache, userId, 'trades', (list, details) => {
    if (event.gap || isFiltered(argumentsOf(details))) return details.DELETE
    const before = rowsOf(list)
    const shown = new Set(before.map(row => row.__ref))
    const first = trades.findIndex(trade => shown.has(trade.__ref))
    // Trades between the list and the event may be missing. An empty list had no trades when it was read, so all trades are new.
    if (event.reason === 'INITIAL' && first < 0 && before.length > 0) return details.DELETE
    // An event can repeat older trades. Those before the first shown trade belong to pages that are not loaded.
    const added = trades.slice(first + 1).filter(trade => !shown.has(trade.__ref)).reverse()
    const total = list.totalCount == null ? undefined : list.totalCount + added.length
    return added.length === 0 ? list : withRows(list, [...added, ...before], total)
  })
}

function apply(cache: ListCache, userId: string, field: string, type: string, { reason, changed, closed }: Change) {
  const state = known.get(cache) ?? new Map<string, ReadonlySet<string>>()
  known.set(cache, state)
  const key = `${field} ${userId}`
  const before = state.get(key)
  if (!before && !replaces(reason)) return // an event with all rows must come first
  const all = new Set(replaces(reason) ? [] : before)
  for (const { id } of changed) all.add(id)
  for (const id of closed) all.delete(id)
  state.set(key, all)
  const isNew = before ? [...all].some(id => !before.has(id)) : false
  const refs = new Map([...all].map(id => [reference(cache, type, id).__ref, id] as const))
  modifyLists(cache, userId, field, (list, details) => {
    const args = argumentsOf(details)
    const kept = rowsOf(list).filter(row => refs.has(row.__ref))
    if (isFiltered(args)) return isNew ? details.DELETE : withRows(list, kept, undefined)
    const shown = new Set(kept.map(row => row.__ref))
    const others = [...refs.keys()].filter(ref => !shown.has(ref)).map(__ref => ({ __ref }))
    return withRows(list, arrange(list, kept, others, order(String(args['sort'] ?? 'VENUE'), details)), all.size)
  })
}

/** Returns kept and others in the order of compare. A list that is not loaded to its end does not get longer. */
function arrange(list: Connection, kept: Reference[], others: Reference[], compare: ((a: Reference, b: Reference) => number | undefined) | undefined) {
  const partial = isPartial(list)
  if (!compare) return partial ? kept : [...kept, ...others]
  const rows = [...kept, ...others]
  if (rows.some(row => compare(row, row) === undefined)) return partial ? kept : rows // a sort value is not in the cache
  rows.sort((a, b) => compare(a, b) ?? 0)
  return partial ? rows.slice(0, Math.max(kept.length, rowsOf(list).length)) : rows
}

/**
 * Reports whether the cache lacks pages of a list. For a query without pageInfo, relayStylePagination stores that there is a next
 * page. So a list with totalCount rows is complete nevertheless.
 */
const isPartial = (list: Connection) =>
  list.pageInfo?.hasNextPage === true && (list.totalCount == null || rowsOf(list).length < list.totalCount)

/** For each value of the argument sort: the path to the sort value in a position, and whether the greatest value is first. */
const sorts: Readonly<Record<string, readonly [path: readonly string[], descending: boolean]>> = {
  VALUE: [['valuation', 'value'], true],
  PNL: [['valuation', 'unrealizedPnl'], true],
  PNL_PERCENT: [['valuation', 'unrealizedPnlPercent'], true],
  ENDS_AT: [['market', 'endsAt'], false],
}

/** Returns a function that compares two rows, or undefined for an unknown sort. Rows whose sort value is null come last. */
function order(sort: string, { readField }: Details) {
  const found = sorts[sort]
  if (!found) return undefined
  const [path, descending] = found
  const valueOf = (row: Reference) => path.reduce<unknown>((from, fieldName) => (from ? readField({ fieldName, from }) : from), row)
  return (a: Reference, b: Reference): number | undefined => {
    const [x, y] = [valueOf(a), valueOf(b)]
    if (x === undefined || y === undefined) return undefined
    if (x === null || y === null) return Number(x === null) - Number(y === null)
    const [s, t] = [String(x), String(y)]
    const difference = isDecimal(s) && isDecimal(t) ? compareDecimals(s, t) : Date.parse(s) - Date.parse(t)
    return descending ? -difference : difference
  }
}

/** The arguments that are part of the name of a stored list, such as positions:{"sort":"VALUE"}. */
function argumentsOf({ storeFieldName }: Details): Record<string, unknown> {
  const brace = storeFieldName.indexOf('{')
  if (brace < 0) return {}
  try {
    return JSON.parse(storeFieldName.slice(brace, storeFieldName.lastIndexOf('}') + 1)) as Record<string, unknown>
  } catch {
    return {}
  }
}

const isFiltered = (args: Record<string, unknown>) => Object.entries(args).some(([name, value]) => name !== 'sort' && value != null)

const rowsOf = ({ nodes, edges }: Connection): Reference[] => [...(nodes ?? edges?.flatMap(({ node }) => (node ? [node] : [])) ?? [])]

/** Replaces the rows of a list. The last edge gets the cursor of the previous last edge, so that the next page begins after it. */
function withRows(list: Connection, rows: Reference[], totalCount: number | undefined): Connection {
  const edges = list.edges && rows.map((node, i) => ({ cursor: '', ...list.edges?.[i + list.edges.length - rows.length] ?? list.edges?.[0], node }))
  return {
    ...list,
    ...(edges && { edges }),
    ...(list.nodes && { nodes: rows }),
    ...(list.totalCount !== undefined && totalCount !== undefined && { totalCount }),
  }
}

/** Calls change for every stored list of a field of the user. It removes a list that is null, so that Apollo sends its query again. */
function modifyLists(cache: ListCache, userId: string, field: string, change: (list: Connection, details: Details) => unknown) {
  modify(cache, userId, field, (list, details) => (list ? change(list, details) : details.DELETE))
}

/** Replaces the stored values of a field of the user, one for each set of arguments, by what change returns. */
function modify(cache: ListCache, userId: string, field: string, change: (value: Connection | null, details: Details) => unknown) {
  const id = cache.identify({ __typename: 'User', id: userId })
  if (id) cache.modify({ id, fields: { [field]: change as never } })
}

const reference = (cache: ListCache, type: string, id: string): { __ref: string } => ({ __ref: cache.identify({ __typename: type, id }) ?? `${type}:${id}` })
