// One connection to the server: a urql client, and the state of its socket.
import { cacheExchange, Client, fetchExchange, subscriptionExchange } from 'urql'
import { createClient } from 'graphql-ws/client'
import { createContext, useContext, useSyncExternalStore } from 'react'
import { socketOptions, watchSocket, type SocketStatus, type SocketWatch } from '../kit/socket'

export interface Connection {
  client: Client
  link: SocketWatch['status']
  onLink: SocketWatch['subscribe']
  close: () => void
}

const endpoint = new URL('graphql', location.href)

/** Connects with headers such as credentials. Nothing but the connection stores these headers. */
export function connect(headers: Record<string, string> = {}): Connection {
  const socket = createClient({ url: endpoint.href.replace(/^http/, 'ws'), connectionParams: headers, ...socketOptions })
  const { status, subscribe } = watchSocket(socket)

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
    link: status,
    onLink: subscribe,
    close: () => void socket.dispose(),
  }
}

export const ConnectionContext = createContext<Connection>(undefined!)

export const useConnection = () => useContext(ConnectionContext)

/** The state of the connection's socket. */
export function useLink(): SocketStatus {
  const { link, onLink } = useConnection()
  return useSyncExternalStore(onLink, link)
}
