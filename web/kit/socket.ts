// How graphql-ws keeps its socket, and the state of the socket for a status light.

/** The state of a socket. It is idle while no subscription needs it, and refused when the server refused the credentials. */
export type SocketState = 'connecting' | 'open' | 'lost' | 'refused' | 'idle'

export interface SocketStatus {
  readonly state: SocketState
  /** The number of times that the socket was opened. Values from an earlier session may be out of date. */
  readonly session: number
  /** When the present state began. */
  readonly since: Date
}

export interface SocketWatch {
  /** Returns the present status. Each change makes a new object. */
  readonly status: () => SocketStatus
  /** Calls a function after each change, until the returned function is called. */
  readonly subscribe: (changed: () => void) => () => void
}

/** The part of a client of graphql-ws that watchSocket uses. */
interface Socket {
  on(event: 'connecting' | 'connected' | 'closed' | 'ping' | 'pong', listener: (about: any) => void): unknown
  terminate(): void
}

/** The close codes of a server that refused the credentials, and of a client that needs its socket no longer. */
const forbidden = 4403
const normal = 1000

const codeOfClose = (event: unknown) => (event as { code?: unknown } | null | undefined)?.code

const pingEvery = 5_000

/**
 * Options for createClient of graphql-ws. The client reconnects without end, after at most four seconds, unless the server refused
 * the credentials. It sends a ping every five seconds, which watchSocket needs.
 */
export const socketOptions = {
  keepAlive: pingEvery,
  retryAttempts: Infinity,
  retryWait: (retries: number): Promise<void> =>
    new Promise(resolve => setTimeout(resolve, Math.min(250 * 2 ** retries, 4_000) * (0.5 + Math.random() / 2))),
  shouldRetry: (event: unknown): boolean => codeOfClose(event) !== forbidden,
}

/**
 * Follows the socket of a client of graphql-ws that was created with socketOptions. The functions of the result suit
 * useSyncExternalStore of React. A connection can break without a close event, so watchSocket ends the connection if the server does
 * not answer a ping within five seconds. The client then reconnects.
 */
export function watchSocket(socket: Socket): SocketWatch {
  let status: SocketStatus = { state: 'idle', session: 0, since: new Date() }
  const listeners = new Set<() => void>()
  const become = (state: SocketState, session = status.session) => {
    if (state === status.state && session === status.session) return // such as one more failed attempt to connect
    status = { state, session, since: new Date() }
    for (const changed of listeners) changed()
  }
  let silent: ReturnType<typeof setTimeout> | undefined
  socket.on('connecting', () => { if (status.state !== 'lost') become('connecting') })
  socket.on('connected', () => become('open', status.session + 1))
  socket.on('closed', (event: unknown) => {
    clearTimeout(silent)
    const code = codeOfClose(event)
    become(code === forbidden ? 'refused' : code === normal ? 'idle' : 'lost')
  })
  socket.on('ping', (received: boolean) => { if (!received) silent = setTimeout(() => socket.terminate(), pingEvery) })
  socket.on('pong', (received: boolean) => { if (received) clearTimeout(silent) })
  return {
    status: () => status,
    subscribe: changed => {
      listeners.add(changed)
      return () => { listeners.delete(changed) }
    },
  }
}
