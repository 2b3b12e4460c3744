import { StrictMode, Suspense, useDeferredValue, useMemo, useReducer, useState, useSyncExternalStore } from 'react'
import { createRoot } from 'react-dom/client'
import { RelayEnvironmentProvider, useLazyLoadQuery, usePaginationFragment, useSubscription } from 'react-relay'
import relay, { type RecordSourceSelectorProxy } from 'relay-runtime'
import { applyDelta, compareDecimals, formatDecimal, type Book, type BookUpdate, type Level } from '@oddsgraph/kit'
import bookSubscription, { type operationsBookSubscription } from './__generated__/operationsBookSubscription.graphql'
import changedSubscription, { type operationsPortfolioChangedSubscription } from './__generated__/operationsPortfolioChangedSubscription.graphql'
import portfolioQuery, { type operationsPortfolioQuery } from './__generated__/operationsPortfolioQuery.graphql'
import pricesSubscription, { type operationsPricesSubscription } from './__generated__/operationsPricesSubscription.graphql'
import searchQuery, { type operationsSearchQuery } from './__generated__/operationsSearchQuery.graphql'
import positionsFragment, { type operations_positions$key } from './__generated__/operations_positions.graphql'
import type { operationsPositionsPageQuery } from './__generated__/operationsPositionsPageQuery.graphql'
import { connection, environment } from './environment'

type Market = NonNullable<operationsSearchQuery['response']['searchMarkets']>['nodes'][number]

declare const WALLET: string // see vite.config.ts

const percent = (value: string) => formatDecimal(value, 'en-US', { style: 'percent', maximumFractionDigits: 1 })
const money = (value: string) => formatDecimal(value, 'en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })

/** Subscribes to the prices of tokens. Relay writes each event to its store by id, so the prices in the query's result change. */
function Follow({ ids }: { ids: string }) {
  useSubscription<operationsPricesSubscription>(useMemo(() => ({ subscription: pricesSubscription, variables: { tokenIds: ids.split(',') } }), [ids]))
  return null
}

function Prices({ markets, onOpen }: { markets: readonly Market[]; onOpen: (market: NonNullable<Market>) => void }) {
  const shown = markets.filter(market => market !== null)
  const ids = shown.flatMap(({ tokens }) => (tokens[0] ? [tokens[0].tokenId] : [])).join()
  return (
    <ul>
      {ids && <Follow ids={ids} />}
      {shown.map(market => {
        const price = market.tokens[0]?.price
        return (
          <li key={market.id}>
            <button type="button" onClick={() => onOpen(market)}>{market.question}</button>{' '}
            {price && <span data-stale={price.freshness.stale} style={{ opacity: price.freshness.stale ? 0.5 : 1 }}>{percent(price.price)}</span>}
          </li>
        )
      })}
    </ul>
  )
}

function Results({ text, onOpen }: { text: string; onOpen: (market: NonNullable<Market>) => void }) {
  const { searchMarkets } = useLazyLoadQuery<operationsSearchQuery>(searchQuery, { text })
  if (!searchMarkets) return <p role="alert">The search failed.</p>
  return searchMarkets.nodes.length > 0 ? <Prices markets={searchMarkets.nodes} onOpen={onOpen} /> : <p>No market fits.</p>
}

function OrderBook({ market }: { market: NonNullable<Market> }) {
  const tokenId = market.tokens[0]!.tokenId
  const [levels, dispatch] = useReducer((before: Book | undefined, update: BookUpdate) => applyDelta(before, update), undefined)
  useSubscription<operationsBookSubscription>(useMemo(() => ({
    subscription: bookSubscription,
    variables: { tokenId },
    onNext: (event: operationsBookSubscription['response'] | null | undefined) => event && dispatch(event.orderbookChanged),
  }), [tokenId]))
  const side = (name: string, list: readonly Level[]) => (
    <table aria-label={name}><tbody>{list.map(({ price, size }) => <tr key={price}><td>{price}</td><td>{size}</td></tr>)}</tbody></table>
  )
  return (
    <section aria-label="Order book">
      <h2>{market.question}</h2>
      <p data-sequence={levels?.sequence}>{levels ? 'Live' : 'Reading the book…'}</p>
      {side('Bids', levels?.bids ?? [])}
      {side('Asks', levels?.asks ?? [])}
    </section>
  )
}

/**
 * Removes closed positions from the user's list and sets the list's totalCount. If the list is loaded to its end, updateList also
 * adds new positions. The set known has the ids of all open positions: an event INITIAL or RESYNC contains all positions, and each
 * later event changes the set.
 */
function updateList(store: RecordSourceSelectorProxy, userId: string, event: operationsPortfolioChangedSubscription['response']['portfolioChanged'], known: Set<string>) {
  const user = store.get(userId)
  const list = user && relay.ConnectionHandler.getConnection(user, 'operations_positions')
  const summary = store.getRootField('portfolioChanged')?.getLinkedRecord('summary')
  if (summary) user?.setLinkedRecord(summary, 'portfolio') // the query may have failed to read it
  if (event.reason === 'INITIAL' || event.reason === 'RESYNC') known.clear()
  for (const { id } of event.changed) known.add(id)
  for (const id of event.closedPositionIds) known.delete(id)
  if (!list) return
  const edges = list.getLinkedRecords('edges') ?? []
  const shown = new Set(edges.map(edge => edge?.getLinkedRecord('node')?.getDataID()))
  for (const id of shown) if (id && !known.has(id)) relay.ConnectionHandler.deleteNode(list, id)
  list.setValue(known.size, 'totalCount')
  if (list.getLinkedRecord('pageInfo')?.getValue('hasNextPage')) return
  for (const id of known) {
    const node = shown.has(id) ? null : store.get(id)
    if (node) relay.ConnectionHandler.insertEdgeAfter(list, relay.ConnectionHandler.createEdge(store, list, node, 'PositionEdge'))
  }
}

function Positions({ user, userId, address }: { user: operations_positions$key; userId: string; address: string }) {
  const { data, hasNext, loadNext } = usePaginationFragment<operationsPositionsPageQuery, operations_positions$key>(positionsFragment, user)
  useSubscription<operationsPortfolioChangedSubscription>(useMemo(() => {
    const known = new Set<string>()
    return {
      subscription: changedSubscription,
      variables: { address },
      updater: (store, event) => event && updateList(store, userId, event.portfolioChanged, known),
    }
  }, [userId, address]))
  if (!data.positions) return <p role="alert">The positions could not be read.</p>
  const rows = data.positions.edges.flatMap(({ node }) => (node ? [node] : []))
  rows.sort((a, b) => compareDecimals(b.valuation?.value ?? '0', a.valuation?.value ?? '0'))
  return (
    <>
      <p><output aria-label="Count">{data.positions.totalCount}</output> positions</p>
      <table>
        <tbody>
          {rows.map(({ id, outcome, size, market, valuation }) => (
            <tr key={id} data-id={id}><td>{market?.question}</td><td>{outcome}</td><td>{size}</td><td data-value={valuation?.value}>{valuation && money(valuation.value)}</td></tr>
          ))}
        </tbody>
      </table>
      {hasNext && <button type="button" onClick={() => loadNext(10)}>More</button>}
    </>
  )
}

function Portfolio({ address }: { address: string }) {
  const { user } = useLazyLoadQuery<operationsPortfolioQuery>(portfolioQuery, { address })
  if (!user) return <p role="alert">The portfolio could not be read.</p>
  return (
    <section aria-label="Portfolio">
      <p><output aria-label="Value">{user.portfolio?.positionsValue && money(user.portfolio.positionsValue)}</output></p>
      <Positions user={user} userId={user.id} address={address} />
    </section>
  )
}

function Connection() {
  const { state, since } = useSyncExternalStore(connection.subscribe, connection.status)
  return <p role="status">{state === 'open' ? 'Connected' : state === 'lost' ? `Connection lost at ${since.toLocaleTimeString()}` : 'Connecting…'}</p>
}

function App() {
  const [text, setText] = useState('')
  const [market, setMarket] = useState<NonNullable<Market>>()
  const searched = useDeferredValue(text)
  return (
    <main>
      <Connection />
      <input type="search" aria-label="Search" value={text} onChange={event => setText(event.currentTarget.value)} />
      <Suspense fallback={<p>Searching…</p>}><Results text={searched} onOpen={setMarket} /></Suspense>
      {market && <OrderBook key={market.id} market={market} />}
      {WALLET && <Suspense fallback={<p>Reading the portfolio…</p>}><Portfolio address={WALLET} /></Suspense>}
    </main>
  )
}

createRoot(document.getElementById('root')!).render(<StrictMode><RelayEnvironmentProvider environment={environment}><App /></RelayEnvironmentProvider></StrictMode>)
