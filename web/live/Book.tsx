// A live order book: the best levels of both sides with bars for how much rests up to each.
import { useEffect, type CSSProperties } from 'react'
import { applyDelta, type Book as Levels, type Level } from '../kit/applyDelta'
import { BookDocument, type BookSubscription, type BookSubscriptionVariables } from './__generated__/operations'
import { useConnection } from './connection'
import { compact, count, decimalsOf, reason } from './format'
import { Freshness, type Heard } from './Freshness'
import { useLive } from './live'

const depth = 12

interface State extends Heard {
  levels: Levels
  spread: string | null | undefined
  /** A change was missed, so that the book has to be asked for again. */
  broken: boolean
}

function useBook(tokenId: string) {
  const { link } = useConnection()
  const { data: book, error, ended, restart } = useLive<BookSubscription, State, BookSubscriptionVariables>(
    { query: BookDocument, variables: { tokenId, depth } },
    (before, { orderbookChanged: event }) => {
      const { freshness, spread } = event.book
      const now = { spread, freshness, session: link().session }
      try {
        return { ...now, levels: applyDelta(before?.levels, event), broken: false }
      } catch {
        return { ...now, levels: { bids: [], asks: [] }, ...before, broken: true }
      }
    },
  )
  const broken = book?.broken
  useEffect(() => {
    if (broken) restart()
  }, [broken, restart])
  return { book: book && { ...book, ended: ended || book.broken }, error }
}

export function Book({ tokenId }: { tokenId: string }) {
  const { book, error } = useBook(tokenId)
  const bids = summed(book?.levels.bids ?? [])
  const asks = summed(book?.levels.asks ?? [])
  const decimals = decimalsOf([...bids, ...asks].map(({ price }) => price))
  const most = Math.max(bids.at(-1)?.total ?? 0, asks.at(-1)?.total ?? 0)
  return (
    <section className="panel book" aria-labelledby="book" data-sequence={book?.levels.sequence}>
      <h2 id="book">Order book <Freshness heard={book} /></h2>
      {error && <p role="alert">{reason(error)}</p>}
      <p className="spread">Spread <strong data-spread={book?.spread}>{book?.spread ?? '–'}</strong></p>
      <div className="sides">
        <Side name="Bids" levels={bids} most={most} decimals={decimals} known={book !== undefined} />
        <Side name="Asks" levels={asks} most={most} decimals={decimals} known={book !== undefined} />
      </div>
    </section>
  )
}

interface Summed extends Level {
  total: number
}

/** The levels with how many shares rest at each price and all better ones. */
function summed(levels: readonly Level[]): Summed[] {
  let total = 0
  return levels.map(level => ({ ...level, total: (total += Number(level.size)) }))
}

interface SideProps {
  name: 'Bids' | 'Asks'
  levels: Summed[]
  /** What the longest bar stands for. */
  most: number
  decimals: number
  known: boolean
}

function Side({ name, levels, most, decimals, known }: SideProps) {
  return (
    <table className={name.toLowerCase()}>
      <caption>{name}</caption>
      <thead>
        <tr>
          <th scope="col" className="figure">Price</th>
          <th scope="col" className="figure">Shares</th>
          <th scope="col" className="figure total">Total</th>
        </tr>
      </thead>
      <tbody>
        {levels.map(({ price, size, total }) => (
          <tr key={price} data-price={price} data-size={size} style={{ '--depth': `${(100 * total) / most}%` } as CSSProperties}>
            <td className="figure level">{Number(price).toFixed(decimals)}</td>
            <td className="figure">{count(size)}</td>
            <td className="figure total">{compact(total)}</td>
          </tr>
        ))}
        {known && levels.length === 0 && <tr><td colSpan={3}>Nobody {name === 'Bids' ? 'buys' : 'sells'}.</td></tr>}
        {!known && Array.from({ length: depth }, (_, i) => (
          <tr key={i} aria-hidden="true"><td colSpan={3}><span className="waiting long" /></td></tr>
        ))}
      </tbody>
    </table>
  )
}
