// The portfolio page: a form for the credentials, then the wallet. If the server refuses the credentials, the page shows the form
// again with the same input.
import { useEffect, useState } from 'react'
import { Provider } from 'urql'
import { ConnectionContext } from './connection'
import { Portfolio } from './Portfolio'
import { SignIn, type Accounts, type Refusal } from './SignIn'
import { open, type Credentials, type Wallet } from './wallet'

/** Returns what the form shows when the server refuses credentials with an error code. */
export function refusalOf(code: string): Refusal {
  if (code === 'FORBIDDEN') return { message: 'These credentials belong to another wallet: check the address.', fields: ['address'] }
  if (code === 'BAD_USER_INPUT') return { message: 'This is not the address of a wallet.', fields: ['address'] }
  return { message: 'The server refused these credentials: the key, the secret or the passphrase is wrong.', fields: ['apiKey', 'secret', 'passphrase'] }
}

interface Props {
  /** Whether the server runs the demo venue; undefined until the server has answered. */
  demo: boolean | undefined
  accounts: Accounts
  /** Whether the venue serves the cash of accounts. */
  cash: boolean
  wallet: Wallet | undefined
  onWallet: (wallet: Wallet | undefined) => void
}

export function Wallets({ demo, accounts, cash, wallet, onWallet }: Props) {
  const [entered, setEntered] = useState<Credentials>()
  const [refusal, setRefusal] = useState<Refusal>()
  const start = (credentials: Credentials) => {
    setEntered(credentials)
    setRefusal(undefined)
    onWallet(open(credentials))
  }
  const close = (refusal?: Refusal) => {
    wallet?.connection.close()
    setRefusal(refusal)
    if (!refusal) setEntered(undefined)
    onWallet(undefined)
  }
  const shown = wallet?.address
  useEffect(() => {
    if (shown) document.querySelector('h1')?.focus({ preventScroll: true })
  }, [shown])
  if (!wallet && demo === undefined) return <h1 tabIndex={-1}>Portfolio</h1> // no form yet, because a demo puts its own wallet above the form
  if (!wallet) return <SignIn demo={demo === true} accounts={accounts} entered={entered} refusal={refusal} onOpen={start} />
  return (
    <ConnectionContext value={wallet.connection}>
      <Provider value={wallet.connection.client}>
        <Portfolio address={wallet.address} cash={cash} onClose={() => close()} onRefused={code => close(refusalOf(code))} />
      </Provider>
    </ConnectionContext>
  )
}
