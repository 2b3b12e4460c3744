// Asks for a wallet and the venue's credentials for it.
import type { FormEvent } from 'react'
import { useTitle } from './route'
import { open, openDemo, type Wallet } from './wallet'

export function SignIn({ demo, onWallet }: { demo: boolean; onWallet: (wallet: Wallet) => void }) {
  useTitle('Portfolio')
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const field = (name: string) => String(new FormData(event.currentTarget).get(name))
    onWallet(open(field('address').trim(), { apiKey: field('apiKey'), secret: field('secret'), passphrase: field('passphrase') }))
  }
  return (
    <>
      <h1 tabIndex={-1}>Portfolio</h1>
      {demo && (
        <section className="panel sign-in" aria-labelledby="demo">
          <h2 id="demo">Demo wallet</h2>
          <p>This server runs the demo venue: no real money. Its wallets are there to look at.</p>
          <button type="button" className="primary" onClick={() => onWallet(openDemo())}>Open the demo wallet</button>
        </section>
      )}
      <section className="panel sign-in" aria-labelledby="wallet">
        <h2 id="wallet">Your wallet</h2>
        <form className="wallet" onSubmit={submit} autoComplete="off">
          <label>Address<input name="address" required pattern="\s*0x[0-9a-fA-F]{40}\s*" title="0x and 40 hex digits" spellCheck={false} /></label>
          <label>API key<input name="apiKey" required spellCheck={false} /></label>
          <label>Secret<input name="secret" type="password" required autoComplete="new-password" /></label>
          <label>Passphrase<input name="passphrase" type="password" required autoComplete="new-password" /></label>
          <p className="detail">They stay in this page's memory, are sent to this server alone, and are gone when the page is closed.</p>
          <button type="submit" className="primary">Open</button>
        </form>
      </section>
    </>
  )
}
