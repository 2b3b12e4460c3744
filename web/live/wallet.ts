// A wallet. Only its open connection has the wallet's credentials, and nothing writes them to the browser's storage.
import { connect, type Connection } from './connection'

export interface Credentials {
  address: string
  apiKey: string
  secret: string
  passphrase: string
}

export interface Wallet {
  address: string
  /** The connection that sends the wallet's credentials. The portfolio page closes it. */
  connection: Connection
}

/** Opens a wallet. Without an API key it sends no credentials: some venues show every wallet to everybody. */
export function open({ address, apiKey, secret, passphrase }: Credentials): Wallet {
  if (!apiKey) return { address, connection: connect() }
  const json = new TextEncoder().encode(JSON.stringify({ apiKey, secret, passphrase }))
  return { address, connection: connect({ 'X-Venue-Credentials': btoa(String.fromCharCode(...json)) }) }
}
