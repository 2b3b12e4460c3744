// Computes the age of a value, even if the client's clock is wrong.

/** The part of a Freshness that ageMs reads. */
export interface Received { readonly receivedAt: string }

/** The times of the server's clock and of the client's clock when a response arrived, in milliseconds since 1970. */
export interface ServerDate { readonly server: number; readonly client: number }

/**
 * Returns the times of a response for ageMs. header is the response's header Date; now is the client's time when the response
 * arrived. Without a valid header, serverDate assumes that both clocks are equal. A page of another origin cannot read the header
 * Date of the service. It can if the page's own server forwards the requests to the service.
 */
export function serverDate(header: string | null | undefined, now: number = Date.now()): ServerDate {
  const server = Date.parse(header ?? '')
  return { server: Number.isNaN(server) ? now : server, client: now }
}

/**
 * Returns how many milliseconds ago the service received a value. The difference between the clocks of the service and the client
 * does not matter. The header Date has whole seconds, so the result is accurate to one second. The result is never negative.
 */
export function ageMs(freshness: Received, date: ServerDate, now: number = Date.now()): number {
  return Math.max(0, date.server + (now - date.client) - Date.parse(freshness.receivedAt))
}
