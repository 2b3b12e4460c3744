// One connection to the server: a urql client, and the state of its socket.
import { cacheExchange, Client, fetchExchange, subscriptionExchange } from 'urql'
import { CloseCode, createClient } from 'graphql-ws/client'
import { createContext, useContext, useSyncExternalStore } from 'react'

/** The state of a socket. */
export interface Link {
  state: 'connecting' | 'open' | 'lost' | 'refused'
  /** The number of times that the socket was opened. Values from an earlier session may be out of date. */
  session: number
  /** When the present state began. */
  since: Date
}

export interface Connection {
  client: Client
  /** Returns the present link. Each change creates a new object. */
  link: () => Link
  onLink: (changed: () => void) => () => void
  close: () => void
}

const pingEvery = 5_000
const endpoint = new URL('graphql', location.href)

/** Connects with headers such as credentials. Nothing but the connection stores these headers. */
export function connect(headers: Record<string, string> = {}): Connection {
  let link: Link = { state: 'connecting', session: 0, since: new Date() }
  const listeners = new Set<() => void>()
  const become = (state: Link['state'], session = link.session) => {
    if (state === link.state && session === link.session) return // no change, such as one more failed attempt to connect
    link = { state, session, since: new Date() }
    for (const changed of listeners) changed()
  }

  let silent: ReturnType<typeof setTimeout>
  const socket = createClient({
    url: endpoint.href.replace(/^http/, 'ws'),
    connectionParams: headers,
    keepAlive: pingEvery,
    // The client tries to reconnect without end, unless the server refused the credentials.
    retryAttempts: Infinity,
    retryWait: retries => new Promise(wait => setTimeout(wait, Math.min(250 * 2 ** retries, 4_000) * (0.5 + Math.random()))),
    shouldRetry: reason => (reason as CloseEvent).code !== CloseCode.Forbidden,
    on: {
      connected: () => become('open', link.session + 1),
      closed: event => {
        clearTimeout(silent)
        become((event as CloseEvent).code === CloseCode.Forbidden ? 'refused' : 'lost')
      },
      // A connection can be broken without a close event. So the client terminates it if the server does not answer a ping.
      ping: received => {
        if (!received) silent = setTimeout(() => socket.terminate(), pingEvery)
      },
      pong: received => {
        if (received) clearTimeout(silent)
      },
    },
  })

  const client = new Client({
    url: endpoint.href,
    preferGetMethod: false,
    fetchOptions: { headers },
    exchanges: [
      cacheExchange,
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query, variables }) => ({
          subscribe: sink => {
            let first = true
            return {
              unsubscribe: socket.subscribe({ query: query ?? '', variables }, {
                ...sink,
                next: ({ data, errors }) => {
                  // An event without data has null, which urql would pass on as data. urql keeps the errors of the last event unless the
                  // next event has a list of errors. In the first event, even an empty list would be an error.
                  sink.next({ data: data ?? undefined, errors: errors ?? (first ? undefined : []) })
                  first = false
                },
                error: problem => {
                  if (!Array.isArray(problem)) return sink.error(problem)
                  sink.next({ errors: problem, hasNext: false }) // hasNext: false ends the subscription in urql; without it, urql would treat these errors as part of one event
                  sink.complete()
                },
              }),
            }
          },
        }),
      }),
    ],
  })

  return {
    client,
    link: () => link,
    onLink: changed => {
      listeners.add(changed)
      return () => listeners.delete(changed)
    },
    close: () => void socket.dispose(),
  }
}

export const ConnectionContext = createContext<Connection>(undefined!)

export const useConnection = () => useContext(ConnectionContext)

/** The state of the connection's socket. */
export function useLink(): Link {
  const { link, onLink } = useConnection()
  return useSyncExternalStore(onLink, link)
}
