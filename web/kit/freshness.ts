// The age of a value, for clients whose clock is wrong.

/** The part of a Freshness that ageMs reads. */
export interface Received { readonly receivedAt: string }

/** When a response arrived: the server's clock and the client's clock, in milliseconds since 1970. */
export interface ServerDate { readonly server: number; readonly client: number }

/**
 * Returns the time of a response from its header Date, for ageMs. now is the client's clock when the response arrived. Without a
 * readable header the clocks are taken as equal. A page of another origin cannot read this header, unless the page's own server
 * forwards its requests to the service.
 */
export function serverDate(header: string | null | undefined, now: number = Date.now()): ServerDate {
  const server = Date.parse(header ?? '')
  return { server: Number.isNaN(server) ? now : server, client: now }
}

/**
 * Returns how many milliseconds ago the service received a value. The difference between the clocks of the service and the client
 * does not matter. The header Date has whole seconds, so the result is accurate to one second. It is never negative.
 */
export function ageMs(freshness: Received, date: ServerDate, now: number = Date.now()): number {
  return Math.max(0, date.server + (now - date.client) - Date.parse(freshness.receivedAt))
}
