// The tape: the latest trades of a token, whoever made them.
import { TradesDocument, type TradesSubscription, type TradesSubscriptionVariables } from './__generated__/operations'
import { count, time } from './format'
import { useLive } from './live'

type Trade = TradesSubscription['tradesAdded']['trades'][number]

const kept = 30

export function Trades({ tokenId }: { tokenId: string }) {
  const { data: trades, error } = useLive<TradesSubscription, Trade[], TradesSubscriptionVariables>(
    { query: TradesDocument, variables: { tokenId } },
    (before = [], { tradesAdded: { reason, trades } }) => {
      const added = trades.toReversed()
      if (reason === 'INITIAL' || reason === 'RESYNC') return added.slice(0, kept)
      const known = new Set(before.map(({ id }) => id)) // urql hands over the last event once more at the end
      return [...added.filter(({ id }) => !known.has(id)), ...before].slice(0, kept)
    },
  )
  return (
    <section className="panel tape" aria-labelledby="trades">
      <h2 id="trades">Trades</h2>
      {error && <p role="alert">{error.message}</p>}
      {trades?.length === 0 && <p>No trade since the server listens.</p>}
      <div className="scroll" tabIndex={0} role="group" aria-label="Latest trades">
        <table>
          <thead>
            <tr>
              <th scope="col">Side</th>
              <th scope="col" className="figure">Price</th>
              <th scope="col" className="figure">Shares</th>
              <th scope="col" className="figure">Time</th>
            </tr>
          </thead>
          <tbody>
            {trades?.map(({ id, side, price, size, timestamp }) => (
              <tr key={id}>
                <td className={side === 'BUY' ? 'up' : 'down'}>{side === 'BUY' ? '▲ Buy' : side === 'SELL' ? '▼ Sell' : 'Trade'}</td>
                <td className="figure">{price}</td>
                <td className="figure">{count(size)}</td>
                <td className="figure">{time(timestamp)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
