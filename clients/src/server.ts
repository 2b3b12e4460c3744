// The server that the checks run against, and its demo venue.
import { GraphQLClient } from 'graphql-request'
import { CloseCode, type ClientOptions } from 'graphql-ws'
import type { CloseEvent } from 'ws'
import { OpenTokensDocument } from './__generated__/operations.js'

export const endpoint = process.env.ODDSGRAPH_URL ?? 'http://127.0.0.1:8080/graphql'
export const socketEndpoint = endpoint.replace(/^http/, 'ws')

/** A wallet of the demo venue. */
export const address = '0x1111111111111111111111111111111111111111'

/** The wallet's credentials, as a header or as a member of connection_init's payload. */
export function credentials(secret = 'demo') {
  const json = JSON.stringify({ apiKey: 'demo-3', secret, passphrase: 'demo' })
  return { 'X-Venue-Credentials': Buffer.from(json).toString('base64') }
}

/** Credentials in a form that the server rejects without asking the venue. */
export const malformed = { 'X-Venue-Credentials': '{}' }

/** How graphql-ws should reconnect: soon and many times, but not after a rejection of the credentials. */
export const reconnecting: Partial<ClientOptions> = {
  retryAttempts: 1000,
  retryWait: () => new Promise(resolve => setTimeout(resolve, 100)),
  shouldRetry: reason => (reason as CloseEvent).code !== CloseCode.Forbidden,
}

/** Tokens that are traded now, the liveliest first. */
export async function openTokens(): Promise<[string, ...string[]]> {
  const data = await new GraphQLClient(endpoint).request(OpenTokensDocument)
  const [first, ...others] = data.searchMarkets!.nodes.flatMap(market => market.tokens.map(token => token.tokenId))
  return [first!, ...others]
}

/** Asks the program that runs the checks to stop the server and to start it on the same port. */
export async function restart() {
  const url = process.env.ODDSGRAPH_RESTART_URL
  if (!url) throw new Error('nobody restarts the server: run this case with make clients')
  const response = await fetch(url, { method: 'POST' })
  if (!response.ok) throw new Error(`the server was not restarted: ${response.status}`)
}

/** Posts to a control endpoint of the demo venue, such as control('trade', …). */
export async function control(name: string, body: object) {
  const venue = process.env.ODDSGRAPH_VENUE
  if (!venue) throw new Error('the demo venue has no control endpoints: run this case with make clients')
  const response = await fetch(`${venue}/__control/${name}`, { method: 'POST', body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${name}: ${response.status} ${await response.text()}`)
}

/** Moves the demo venue's market by the given number of steps. */
export const step = (steps: number) => control('step', { steps })
