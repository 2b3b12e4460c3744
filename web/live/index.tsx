// The live board: the liveliest markets with their prices as they move.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { cacheExchange, Client, fetchExchange, Provider, subscriptionExchange, useQuery, useSubscription } from 'urql'
import { createClient } from 'graphql-ws'
import { MarketsDocument, PricesDocument, type PricesSubscription } from './__generated__/operations'
import './index.css'

const sockets = createClient({ url: new URL('/graphql', location.href).href.replace(/^http/, 'ws') })
const client = new Client({
  url: '/graphql',
  preferGetMethod: false,
  exchanges: [
    cacheExchange,
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ query, variables }) => ({
        subscribe: sink => ({ unsubscribe: sockets.subscribe({ query: query ?? '', variables }, sink) }),
      }),
    }),
  ],
})

type Prices = Record<string, PricesSubscription['priceChanged']>

function Board() {
  const [{ data, error }] = useQuery({ query: MarketsDocument })
  const rows = data?.searchMarkets?.nodes.flatMap(market => market.tokens.slice(0, 1).map(token => ({ market, token }))) ?? []
  const [live] = useSubscription<PricesSubscription, Prices, { tokenIds: string[] }>(
    { query: PricesDocument, variables: { tokenIds: rows.map(row => row.token.tokenId) }, pause: rows.length === 0 },
    (prices = {}, { priceChanged }) => ({ ...prices, [priceChanged.token.tokenId]: priceChanged }),
  )
  return (
    <main>
      <h1>Live prices</h1>
      {error && <p role="alert">{error.message}</p>}
      <table>
        <thead>
          <tr>
            <th scope="col">Market</th>
            <th scope="col">Price</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ market, token }) => (
            <tr key={token.id}>
              <th scope="row">{market.question}</th>
              <td>{live.data?.[token.tokenId]?.price.price ?? '…'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </main>
  )
}

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Provider value={client}>
      <Board />
    </Provider>
  </StrictMode>,
)
