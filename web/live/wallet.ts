// Whose portfolio is shown. Credentials are held by the wallet's connection while it is open, and written nowhere.
import { connect, type Connection } from './connection'

export interface Wallet {
  address: string
  /** Carries the wallet's credentials. Whoever closes the wallet closes it. */
  connection: Connection
}

export interface Credentials {
  apiKey: string
  secret: string
  passphrase: string
}

export function open(address: string, { apiKey, secret, passphrase }: Credentials): Wallet {
  const json = new TextEncoder().encode(JSON.stringify({ apiKey, secret, passphrase }))
  return { address, connection: connect({ 'X-Venue-Credentials': btoa(String.fromCharCode(...json)) }) }
}

/** Opens a wallet of the embedded demo venue. */
export const openDemo = () =>
  open('0x2222222222222222222222222222222222222222', { apiKey: 'demo-50', secret: 'demo', passphrase: 'demo' })
