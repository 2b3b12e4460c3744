// The form for a wallet and the venue's credentials for it.
import { useEffect, useRef, type FormEvent } from 'react'
import { useTitle } from './route'
import type { Credentials } from './wallet'

/** Why the server refused the credentials that were typed. */
export interface Refusal {
  message: string
  /** The fields of the form that may be wrong. */
  fields: readonly (keyof Credentials)[]
}

/** Who may read wallets: anybody by their address, only their owners, or nobody. */
export type Accounts = 'public' | 'owners' | 'none'

interface Props {
  demo: boolean
  accounts: Accounts
  /** The credentials that were typed before. */
  entered: Credentials | undefined
  refusal: Refusal | undefined
  onOpen: (credentials: Credentials) => void
}

export const demoWallet: Credentials = { address: '0x2222222222222222222222222222222222222222', apiKey: 'demo-50', secret: 'demo', passphrase: 'demo' }

export function SignIn({ demo, accounts, entered, refusal, onOpen }: Props) {
  useTitle('Portfolio')
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (refusal) form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [refusal])
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const field = (name: keyof Credentials) => String(form.get(name) ?? '').trim()
    onOpen({ address: field('address'), apiKey: field('apiKey'), secret: field('secret'), passphrase: field('passphrase') })
  }
  const input = (name: keyof Credentials) => ({
    name, required: true, spellCheck: false, defaultValue: entered?.[name],
    'aria-invalid': refusal?.fields.includes(name) ?? false, 'aria-describedby': refusal ? 'refusal' : undefined,
  })
  if (accounts === 'none') {
    return (
      <>
        <h1 tabIndex={-1}>Portfolio</h1>
        <p className="panel">This service shows no wallets of this venue.</p>
        <p className="below"><a className="button" href="#/">All markets</a></p>
      </>
    )
  }
  return (
    <>
      <h1 tabIndex={-1}>Portfolio</h1>
      {demo && (
        <section className="panel sign-in" aria-labelledby="demo">
          <h2 id="demo">Demo wallet</h2>
          <p>This server runs the demo venue: no real money. Anyone may look at its wallets.</p>
          <button type="button" className="primary" onClick={() => onOpen(demoWallet)}>Open the demo wallet</button>
        </section>
      )}
      <section className="panel sign-in" aria-labelledby="wallet">
        <h2 id="wallet">{accounts === 'public' ? 'Any wallet' : 'Your wallet'}</h2>
        {refusal && <p role="alert" id="refusal">{refusal.message}</p>}
        <form ref={form} className="wallet" onSubmit={submit} autoComplete="off">
          <label>Address<input {...input('address')} pattern="\s*0x[0-9a-fA-F]{40}\s*" title="0x and 40 hex digits" /></label>
          {accounts === 'public'
            ? <p className="detail">This venue shows wallets to everybody, so no key is needed.</p>
            : (
              <>
                <label>API key<input {...input('apiKey')} /></label>
                <label>Secret<input {...input('secret')} type="password" autoComplete="new-password" /></label>
                <label>Passphrase<input {...input('passphrase')} type="password" autoComplete="new-password" /></label>
                <p className="detail">They stay in this page's memory, are sent to this server alone, and are gone when the page is closed.</p>
              </>
            )}
          <button type="submit" className="primary">Open</button>
        </form>
      </section>
    </>
  )
}
