// Subscriptions that are kept up: urql's, begun again when the server has ended them.
import { useEffect, useState } from 'react'
import { useSubscription, type AnyVariables, type CombinedError, type SubscriptionHandler, type UseSubscriptionArgs } from 'urql'
import { useLink } from './connection'

const pause = 3_000

/** Errors that asking again does not help against. */
const lasting = ['BAD_USER_INPUT', 'UNAUTHENTICATED', 'FORBIDDEN', 'UNSUPPORTED', 'GRAPHQL_VALIDATION_FAILED']

/** Whether asking again brings the same error. */
export const isLasting = (error: CombinedError | undefined) =>
  error?.graphQLErrors.some(({ extensions }) => lasting.includes(String(extensions.code))) ?? false

interface Live<Result> {
  data: Result | undefined
  error: CombinedError | undefined
  /** Nothing more comes, for now: what was brought may be out of date. */
  ended: boolean
  restart: () => void
}

/**
 * Follows a subscription. The socket reconnects by itself, and then each subscription brings its present state again; but an
 * error ends one alone, for example that this page reads too slowly.
 */
export function useLive<Data, Result = Data, Variables extends AnyVariables = AnyVariables>(
  args: UseSubscriptionArgs<Variables, Data>, handler?: SubscriptionHandler<Data, Result>,
): Live<Result> {
  const link = useLink()
  const [state, restart] = useSubscription<Data, Result, Variables>(args, handler)
  const { data, error, hasNext } = state as typeof state & { hasNext: boolean } // which its type leaves out
  // urql lets go of the data with an error; what was known stays to be seen, marked.
  const [last, setLast] = useState(data)
  if (data !== undefined && data !== last) setLast(data)
  const ended = !hasNext && (data !== undefined || error !== undefined)
  // Credentials that the server refused are not sent again.
  const again = ended && link.state !== 'refused' && !isLasting(error)
  useEffect(() => {
    if (!again) return
    const timer = setInterval(restart, pause)
    return () => clearInterval(timer)
  }, [again, restart])
  return { data: data ?? last, error, ended, restart }
}

/**
 * Repeats a query that has failed: when the server is back, and as long as the error may pass, each time after the while that
 * the server names.
 */
export function useAgain(error: CombinedError | undefined, ask: (options: { requestPolicy: 'network-only' }) => void) {
  const { session } = useLink()
  useEffect(() => {
    if (!error || isLasting(error)) return
    const wait = Math.max(0, ...error.graphQLErrors.map(({ extensions }) => Number(extensions.retryAfterMs) || 0)) || 5_000
    const timer = setTimeout(() => ask({ requestPolicy: 'network-only' }), wait)
    return () => clearTimeout(timer)
  }, [error, ask])
  useEffect(() => {
    if (error) ask({ requestPolicy: 'network-only' })
  }, [session])
}
