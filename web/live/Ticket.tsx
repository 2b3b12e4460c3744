// The estimated result of a trade against the present order book. The ticket places no order.
import { useEffect } from 'react'
import { useQuery } from 'urql'
import { FillEstimateDocument } from './__generated__/operations'
import { exactCents, reason, shares, useMoney } from './format'
import { Source } from './Source'

/** The values that were typed. */
export interface Draft {
  side: 'BUY' | 'SELL'
  by: 'size' | 'amount'
  text: string
}

interface Props {
  tokenId: string
  outcome: string
  venue: string | null | undefined
  draft: Draft
  onDraft: (draft: Draft) => void
}

/** The interval in milliseconds at which the ticket reads the estimate again, because the order book changes. */
const refresh = 2_000

export function Ticket({ tokenId, outcome, venue, draft, onDraft }: Props) {
  const { side, by, text } = draft
  const valid = /^\d{1,12}(\.\d{1,6})?$/.test(text) && Number(text) > 0
  const variables = { tokenId, side, for: by === 'size' ? { size: text } : { amount: text } }
  const [{ data, error }, ask] = useQuery({ query: FillEstimateDocument, variables, pause: !valid, requestPolicy: 'cache-and-network' })
  useEffect(() => {
    if (!valid) return
    const timer = setInterval(() => ask({ requestPolicy: 'network-only' }), refresh)
    return () => clearInterval(timer)
  }, [valid, ask])
  const estimate = valid ? data?.token?.fillEstimate : undefined
  const choose = (label: string, chosen: boolean, change: Partial<Draft>, className = '') => (
    <button type="button" className={className} aria-pressed={chosen} onClick={() => onDraft({ ...draft, ...change })}>{label}</button>
  )
  return (
    <section className="panel ticket" aria-labelledby="ticket">
      <h2 id="ticket">Estimate a trade <Source of="Estimate" document={FillEstimateDocument} variables={valid ? variables : { ...variables, for: { size: '100' } }} /></h2>
      <div className="segments" role="group" aria-label="Side">
        {choose(`Buy ${outcome}`, side === 'BUY', { side: 'BUY' }, 'buy')}
        {choose(`Sell ${outcome}`, side === 'SELL', { side: 'SELL' }, 'sell')}
      </div>
      <div className="segments" role="group" aria-label="Given as">
        {choose('Shares', by === 'size', { by: 'size' })}
        {choose('Money', by === 'amount', { by: 'amount' })}
      </div>
      <label>
        {by === 'size' ? 'Shares' : side === 'BUY' ? 'Money to spend' : 'Money to receive'}
        <input value={text} inputMode="decimal" placeholder="100" aria-invalid={text !== '' && !valid} onChange={event => onDraft({ ...draft, text: event.target.value.trim() })} />
      </label>
      {text !== '' && !valid && <p role="alert">Type a number above 0, such as 100 or 12.50</p>}
      {error && <p role="alert">{reason(error)}</p>}
      <Fill venue={venue} estimate={estimate} side={side} empty={valid && data?.token?.fillEstimate === null} />
    </section>
  )
}

interface Estimate { averagePrice?: string | null; worstPrice?: string | null; filledSize: string; cost: string; slippage?: string | null; complete: boolean }

function Fill({ venue, estimate, side, empty }: { venue: string | null | undefined; estimate: Estimate | null | undefined; side: Draft['side']; empty: boolean }) {
  const { money } = useMoney(venue)
  const price = (price: string | null | undefined) => (price ? exactCents(price) : '–')
  const profit = estimate && String(Number(estimate.filledSize) - Number(estimate.cost))
  return (
    <>
      <dl className="fill" aria-live="polite" data-average={estimate?.averagePrice}>
        <div><dt>Average price</dt><dd>{price(estimate?.averagePrice)}</dd></div>
        <div><dt>Worst price</dt><dd>{price(estimate?.worstPrice)}</dd></div>
        <div><dt>Slippage</dt><dd>{price(estimate?.slippage)}</dd></div>
        <div><dt>Shares</dt><dd>{estimate ? shares(estimate.filledSize) : '–'}</dd></div>
        <div><dt>{side === 'BUY' ? 'Cost' : 'Proceeds'}</dt><dd>{money(estimate?.cost)}</dd></div>
        {side === 'BUY' && <div><dt>Payout if it wins</dt><dd>{money(estimate?.filledSize)}</dd></div>}
        {side === 'BUY' && <div><dt>Profit if it wins</dt><dd>{money(profit)}</dd></div>}
      </dl>
      {estimate && !estimate.complete && <p className="warning">The book holds less than that.</p>}
      {empty && <p className="warning">There is no order to trade against.</p>}
      <p className="detail">Before fees. Nothing is placed: this graph only reads.</p>
    </>
  )
}
