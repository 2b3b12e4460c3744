// A live order book as a ladder: asks above, bids below, the midpoint between them. A click fills the ticket.
import { useEffect, useLayoutEffect, useState, type CSSProperties } from 'react'
import { applyDelta, type Book as Levels } from '../kit/applyDelta'
import { BookDocument, type BookSubscription, type BookSubscriptionVariables } from './__generated__/operations'
import { useConnection } from './connection'
import { Depth } from './Depth'
import { centDecimals, compact, exactCents, plainCents, reason, shares, sizeDecimals } from './format'
import { Freshness, type Heard } from './Freshness'
import { grouped, steps, summed, type Step, type Summed } from './levels'
import { useLive } from './live'
import { Source } from './Source'
import type { Draft } from './Ticket'

/** rows is the number of rows of each side. deep is the number of levels to read for groups, so that the groups fill the rows. */
const rows = 10
const deep = 100

interface State extends Heard {
  levels: Levels
  spread: string | null | undefined
  midpoint: string | null | undefined
  /** A change was missed, so the book must be subscribed to again. */
  broken: boolean
}

function useBook(tokenId: string, depth: number) {
  const { link } = useConnection()
  const { data: book, error, ended, restart } = useLive<BookSubscription, State, BookSubscriptionVariables>(
    { query: BookDocument, variables: { tokenId, depth } },
    (before, { orderbookChanged: event }) => {
      const { freshness, spread, midpoint } = event.book
      const now = { spread, midpoint, freshness, session: link().session }
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

interface Props {
  tokenId: string
  /** Why the token cannot be traded any more; "" while it can be traded. */
  closed: string
  onPick: (draft: Draft) => void
  /** Is called with the best prices when they change. */
  onTop: (top: Top) => void
}

/** The best prices of a book; undefined while they are not known, or if nobody buys or sells. */
export interface Top {
  bid: string | undefined
  ask: string | undefined
}

export function Book({ tokenId, closed, onPick, onTop }: Props) {
  const [step, setStep] = useState<Step>(0)
  const depth = step === 0 ? rows : deep
  const { book, error } = useBook(tokenId, depth)
  const [bid, ask] = [book?.levels.bids[0]?.price, book?.levels.asks[0]?.price]
  useLayoutEffect(() => onTop({ bid, ask }), [bid, ask, onTop])
  const side = (name: 'bids' | 'asks') => summed(grouped(book?.levels[name] ?? [], step, name).slice(0, rows))
  const bids = side('bids')
  const asks = side('asks')
  const empty = closed !== '' && bids.length + asks.length === 0
  return (
    <section className="panel book" aria-labelledby="book" data-sequence={book?.levels.sequence}>
      <h2 id="book">Order book <Freshness heard={book} final={empty} /> <Source of="Order book" document={BookDocument} variables={{ tokenId, depth }} /></h2>
      {!empty && <div className="chips" role="group" aria-label="Group by">
        {steps.map(s => <button key={s} type="button" aria-pressed={s === step} onClick={() => setStep(s)}>{s === 0 ? 'All' : `${s / 100}¢`}</button>)}
      </div>}
      {error && <p role="alert">{reason(error)}</p>}
      {empty
        ? <p className="ended">{closed}</p>
        : <Ladder bids={bids} asks={asks} midpoint={book?.midpoint} spread={book?.spread} known={book !== undefined} onPick={onPick} />}
      {!empty && <Depth bids={bids} asks={asks} />}
    </section>
  )
}

interface LadderProps {
  bids: Summed[]
  asks: Summed[]
  midpoint: string | null | undefined
  spread: string | null | undefined
  /** Whether the levels have been read. */
  known?: boolean
  /** Is called when the user picks a level; without it, levels are not buttons. */
  onPick?: (draft: Draft) => void
}

/** The levels of a book: asks above, bids below, the midpoint between them. */
export function Ladder({ bids, asks, midpoint, spread, known = true, onPick }: LadderProps) {
  const levels = [...bids, ...asks]
  const shape = {
    decimals: centDecimals(levels.map(({ price }) => price)), fraction: sizeDecimals(levels.map(({ size }) => size)),
    most: Math.max(bids.at(-1)?.total ?? 0, asks.at(-1)?.total ?? 0), known, onPick,
  }
  return (
    <table className="ladder">
      <thead>
        <tr>
          <th scope="col" className="figure">Price ¢</th>
          <th scope="col" className="figure">Shares</th>
          <th scope="col" className="figure total">Total</th>
        </tr>
      </thead>
      <Side name="asks" levels={asks.toReversed()} {...shape} />
      <tbody>
        <tr className="mid">
          <td colSpan={3}>
            Mid <strong>{midpoint ? exactCents(midpoint) : '–'}</strong>
            <span className="spread">Spread <strong data-spread={spread}>{spread ? exactCents(spread) : '–'}</strong></span>
          </td>
        </tr>
      </tbody>
      <Side name="bids" levels={bids} {...shape} />
    </table>
  )
}

interface SideProps {
  name: 'bids' | 'asks'
  levels: Summed[]
  /** The greatest total of both sides. The row with this total has the longest bar. */
  most: number
  decimals: number
  fraction: number
  known: boolean
  onPick: ((draft: Draft) => void) | undefined
}

function Side({ name, levels, most, decimals, fraction, known, onPick }: SideProps) {
  const side = name === 'asks' ? 'BUY' : 'SELL'
  return (
    <tbody className={name}>
      {levels.map(({ price, size, total }) => (
        <tr key={price} data-price={price} data-size={size} style={{ '--depth': `${(100 * total) / most}%` } as CSSProperties}>
          <td className="figure level">
            {onPick ? (
              <button type="button" aria-label={`${side === 'BUY' ? 'Buy' : 'Sell'} ${shares(total)} at ${exactCents(price)} or better`} onClick={() => onPick({ side, by: 'size', text: String(Math.round(total * 100) / 100) })}>
                {plainCents(price, decimals)}
              </button>
            ) : plainCents(price, decimals)}
          </td>
          <td className="figure"><span key={size} className="flash">{shares(size, fraction)}</span></td>
          <td className="figure total">{total < 1000 ? shares(total, fraction) : compact(total)}</td>
        </tr>
      ))}
      {known && levels.length === 0 && <tr><td colSpan={3}>No {name}.</td></tr>}
      {!known && Array.from({ length: rows }, (_, i) => <tr key={i} aria-hidden="true"><td colSpan={3}><span className="waiting long" /></td></tr>)}
    </tbody>
  )
}
