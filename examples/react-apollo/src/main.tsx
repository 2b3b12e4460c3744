import { StrictMode, useReducer, useState, useSyncExternalStore } from 'react'
import { createRoot } from 'react-dom/client'
import { ApolloProvider, useApolloClient, useQuery, useSubscription } from '@apollo/client/react'
import type { InMemoryCache } from '@apollo/client'
import { applyDelta, formatDecimal, messagesOf, type Book, type BookUpdate, type Level } from '@oddsgraph/kit'
import { applyPortfolio } from '@oddsgraph/kit/apollo'
import { client, connection } from './client'
import { book, portfolio, portfolioChanged, prices, search, type Market, type Price } from './operations'

declare const WALLET: string // see vite.config.ts

const percent = (value: string) => formatDecimal(value, 'en-US', { style: 'percent', maximumFractionDigits: 1 })
const money = (value: string) => formatDecimal(value, 'en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })

/**
 * An event can have data and errors. With any other error policy, useSubscription calls onError for such an event and not onData.
 */
const errorPolicy = 'ignore'

function Probability({ price }: { price: Price | null }) {
  if (!price) return <>–</>
  return <span data-stale={price.freshness.stale} style={{ opacity: price.freshness.stale ? 0.5 : 1 }}>{percent(price.price)}</span>
}

function Search({ onOpen }: { onOpen: (market: Market) => void }) {
  const [text, setText] = useState('')
  const { data, error } = useQuery(search, { variables: { text }, errorPolicy: 'all' })
  const markets = data?.searchMarkets?.nodes ?? []
  const tokenIds = markets.flatMap(({ tokens }) => tokens.slice(0, 1).map(({ tokenId }) => tokenId))
  // Apollo Client writes each event to its cache by id, so the prices in the query's result change.
  useSubscription(prices, { variables: { tokenIds }, skip: tokenIds.length === 0, ignoreResults: true, errorPolicy })
  return (
    <section aria-label="Markets">
      <input type="search" aria-label="Search" value={text} onChange={event => setText(event.currentTarget.value)} />
      {messagesOf(error).map(message => <p key={message} role="alert">{message}</p>)}
      <ul>
        {markets.map(market => (
          <li key={market.id}>
            <button type="button" onClick={() => onOpen(market)}>{market.question}</button> <Probability price={market.tokens[0]?.price ?? null} />
          </li>
        ))}
      </ul>
    </section>
  )
}

const after = (before: Book | undefined, update: BookUpdate) => applyDelta(before, update)

function OrderBook({ market }: { market: Market }) {
  const tokenId = market.tokens[0]!.tokenId
  const [levels, dispatch] = useReducer(after, undefined)
  useSubscription(book, {
    variables: { tokenId },
    fetchPolicy: 'no-cache',
    ignoreResults: true,
    errorPolicy,
    onData: ({ data: { data } }) => data && dispatch(data.orderbookChanged),
  })
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

function Portfolio({ address }: { address: string }) {
  const { cache } = useApolloClient()
  const { data, error, fetchMore } = useQuery(portfolio, { variables: { address }, errorPolicy: 'all' })
  const user = data?.user
  useSubscription(portfolioChanged, {
    variables: { address },
    skip: !user,
    ignoreResults: true,
    errorPolicy,
    onData: ({ data: { data } }) => user && data && applyPortfolio(cache as InMemoryCache, user.id, data.portfolioChanged),
  })
  const positions = user?.positions
  if (!positions) return error ? <p role="alert">{messagesOf(error).join('. ')}</p> : <p>Reading the portfolio…</p>
  const { hasNextPage, endCursor } = positions.pageInfo
  return (
    <section aria-label="Portfolio">
      <p><output aria-label="Value">{user.portfolio?.positionsValue && money(user.portfolio.positionsValue)}</output> in <output aria-label="Count">{positions.totalCount}</output> positions</p>
      <table>
        <tbody>
          {positions.nodes.map(({ id, outcome, size, market, valuation }) => (
            <tr key={id} data-id={id}><td>{market?.question}</td><td>{outcome}</td><td>{size}</td><td data-value={valuation?.value}>{valuation && money(valuation.value)}</td></tr>
          ))}
        </tbody>
      </table>
      {hasNextPage && endCursor && <button type="button" onClick={() => void fetchMore({ variables: { after: endCursor } })}>More</button>}
    </section>
  )
}

function Connection() {
  const { state, since } = useSyncExternalStore(connection.subscribe, connection.status)
  return <p role="status">{state === 'open' ? 'Connected' : state === 'lost' ? `Connection lost at ${since.toLocaleTimeString()}` : 'Connecting…'}</p>
}

function App() {
  const [market, setMarket] = useState<Market>()
  return (
    <main>
      <Connection />
      <Search onOpen={setMarket} />
      {market && <OrderBook key={market.id} market={market} />}
      {WALLET && <Portfolio address={WALLET} />}
    </main>
  )
}

createRoot(document.getElementById('root')!).render(<StrictMode><ApolloProvider client={client}><App /></ApolloProvider></StrictMode>)
