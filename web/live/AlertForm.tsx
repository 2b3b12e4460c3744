// The form that sets price alerts for a token.
import { useState, type FormEvent } from 'react'
import { add, remove, useAlerts } from './alertList'
import { exactCents } from './format'
import type { Quote } from './prices'

export function AlertForm({ marketId, tokenId, name, quote }: { marketId: string; tokenId: string; name: string; quote: Quote | undefined }) {
  const [text, setText] = useState('')
  const own = useAlerts().filter(alert => alert.tokenId === tokenId)
  const at = Number(text) / 100
  const valid = /^\d{1,2}(\.\d{1,2})?$/.test(text) && at > 0
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!valid || !quote || at === Number(quote.price)) return
    add({ marketId, tokenId, name, at, above: at > Number(quote.price) })
    setText('')
  }
  return (
    <section className="panel alert" aria-labelledby="alert">
      <h2 id="alert">Alert</h2>
      <form onSubmit={submit}>
        <label>Tell me at, ¢<input value={text} inputMode="decimal" placeholder={quote && exactCents(quote.price).replace('¢', '')} aria-invalid={text !== '' && !valid} onChange={event => setText(event.target.value.trim())} /></label>
        <button type="submit" aria-disabled={!valid || !quote}>Set</button>
      </form>
      <ul>
        {own.map(alert => (
          <li key={`${alert.at} ${alert.above}`}>
            {alert.above ? 'Above' : 'Below'} {exactCents(alert.at)}
            <button type="button" aria-label={`Remove the alert at ${exactCents(alert.at)}`} onClick={() => remove(alert)}>×</button>
          </li>
        ))}
      </ul>
      <p className="detail">Kept in this browser. A notice appears on every page of the board while it is open.</p>
    </section>
  )
}
