// The tape: the latest public trades of a token.
import { useQuery } from 'urql'
import { ServiceDocument, TradesDocument, type TradesSubscription, type TradesSubscriptionVariables } from './__generated__/operations'
import { useConnection, useLink } from './connection'
import { centDecimals, plainCents, reason, shares, sizeDecimals, time } from './format'
import { useLive } from './live'
import { Source } from './Source'
import { useStream } from './Stream'

type Trade = TradesSubscription['tradesAdded']['trades'][number]

/** A trade, or a mark for a gap in which trades may be missing. */
type Entry = Trade | { id: string; timestamp: string; missing: true }

interface Tape {
  entries: Entry[]
  /** Whether the trades from before the subscription are known. */
  known: boolean
  session: number
}

/** The entries after an event, newest first. The trades of a RESYNC can be older than those that are shown. */
function apply(before: Entry[], { reason, trades, gap }: TradesSubscription['tradesAdded']): Entry[] {
  const added: Entry[] = trades.toReversed()
  if (gap) added.push({ id: `before ${trades[0]?.id ?? 'the next'}`, timestamp: (trades[0] ?? before[0])?.timestamp ?? '1970', missing: true })
  const ids = new Set(added.map(({ id }) => id)) // when the subscription ends, urql passes the last event a second time
  const all = reason === 'INITIAL' ? added : [...added, ...before.filter(({ id }) => !ids.has(id))]
  return all.sort((a, b) => Date.parse(b.timestamp) - Date.parse(a.timestamp)).slice(0, kept)
}

const kept = 30

export function Trades({ tokenId }: { tokenId: string }) {
  const { link } = useConnection()
  const { state, session } = useLink()
  const stream = useStream()
  const [{ data: service }] = useQuery({ query: ServiceDocument })
  const listed = !service?.serviceStatus.venue?.unsupported.includes('market-trades')
  const { data: tape, error, ended } = useLive<TradesSubscription, Tape, TradesSubscriptionVariables>(
    { query: TradesDocument, variables: { tokenId } },
    (before, { tradesAdded }) => ({ entries: apply(before?.entries ?? [], tradesAdded), known: tradesAdded.known, session: link().session }),
  )
  // A tape has no Freshness. It is up to date while the venue's stream is live.
  const behind = stream !== undefined && stream.state !== 'LIVE'
  const stale = tape !== undefined && (ended || behind || state !== 'open' || session !== tape.session)
  const trades = tape?.entries.flatMap(entry => ('missing' in entry ? [] : [entry])) ?? []
  const decimals = centDecimals(trades.map(({ price }) => price))
  const fraction = sizeDecimals(trades.map(({ size }) => size))
  return (
    <section className="panel tape" aria-labelledby="trades">
      <h2 id="trades">Trades {stale && <span className="freshness stale" data-stale>Stale</span>} <Source of="Trades" document={TradesDocument} variables={{ tokenId }} /></h2>
      {error && <p role="alert">{reason(error)}</p>}
      {tape?.known && tape.entries.length === 0 && <p>No trade yet.</p>}
      <div className="scroll" tabIndex={0} role="group" aria-label="Latest trades">
        <table>
          <thead>
            <tr>
              <th scope="col">Side</th>
              <th scope="col" className="figure">Price ¢</th>
              <th scope="col" className="figure">Shares</th>
              <th scope="col" className="figure">Time</th>
            </tr>
          </thead>
          <tbody>
            {tape?.entries.map(entry => ('missing' in entry
              ? <tr key={entry.id} className="missing"><td colSpan={4}>Some trades may be missing here.</td></tr>
              : <Row key={entry.id} trade={entry} decimals={decimals} fraction={fraction} />
            ))}
            {!tape?.known && !error && <tr className="earlier"><td colSpan={4}>{!listed ? 'The venue does not list earlier trades.' : service?.serviceStatus.upstreamReachable === false ? 'Earlier trades cannot be read: the venue does not answer.' : 'Reading earlier trades…'}</td></tr>}
          </tbody>
        </table>
      </div>
    </section>
  )
}

const Row = ({ trade: { id, side, price, size, timestamp }, decimals, fraction }: { trade: Trade; decimals: number; fraction: number }) => (
  <tr data-trade={id}>
    <td className={side === 'BUY' ? 'up' : 'down'}>{side === 'BUY' ? '▲ Buy' : side === 'SELL' ? '▼ Sell' : 'Trade'}</td>
    <td className="figure">{plainCents(price, decimals)}</td>
    <td className="figure">{shares(size, fraction)}</td>
    <td className="figure">{time(timestamp)}</td>
  </tr>
)
