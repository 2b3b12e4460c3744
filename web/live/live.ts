// Subscriptions of urql that start again after the server has ended them.
import { useEffect, useState } from 'react'
import { useSubscription, type AnyVariables, type CombinedError, type SubscriptionHandler, type UseSubscriptionArgs } from 'urql'
import { useLink } from './connection'

const pause = 3_000

/** The codes of errors that occur again if the same request is sent again. */
const lasting = ['BAD_USER_INPUT', 'UNAUTHENTICATED', 'FORBIDDEN', 'UNSUPPORTED', 'GRAPHQL_VALIDATION_FAILED']

/** Whether the error occurs again if the same request is sent again. */
export const isLasting = (error: CombinedError | undefined) =>
  error?.graphQLErrors.some(({ extensions }) => lasting.includes(String(extensions.code))) ?? false

interface Live<Result> {
  data: Result | undefined
  error: CombinedError | undefined
  /** Whether the subscription has ended, so the data may be out of date. useLive may start it again later. */
  ended: boolean
  restart: () => void
}

/**
 * Subscribes and returns the last data. The socket reconnects by itself, and after that each subscription delivers its present
 * state again. An error ends a single subscription, for example if this page reads too slowly. useLive starts this subscription
 * again, unless the same error would occur again.
 */
export function useLive<Data, Result = Data, Variables extends AnyVariables = AnyVariables>(
  args: UseSubscriptionArgs<Variables, Data>, handler?: SubscriptionHandler<Data, Result>,
): Live<Result> {
  const link = useLink()
  const [state, restart] = useSubscription<Data, Result, Variables>(args, handler)
  const { data, error, hasNext } = state as typeof state & { hasNext: boolean } // the declared type lacks hasNext
  // urql drops the data when an error arrives. useLive keeps the last data, so that the page can show it as out of date.
  const [last, setLast] = useState(data)
  if (data !== undefined && data !== last) setLast(data)
  const ended = !hasNext && (data !== undefined || error !== undefined)
  // The subscription does not start again if the server refused the credentials.
  const again = ended && link.state !== 'refused' && !isLasting(error)
  useEffect(() => {
    if (!again) return
    const timer = setInterval(restart, pause)
    return () => clearInterval(timer)
  }, [again, restart])
  return { data: data ?? last, error, ended, restart }
}

/** Returns the milliseconds to wait before sending a failed query again: the server's retryAfterMs, or 5 seconds without it. */
export const waitOf = (error: CombinedError) =>
  Math.max(0, ...error.graphQLErrors.map(({ extensions }) => Number(extensions.retryAfterMs) || 0)) || 5_000

/**
 * Sends a failed query again when the socket has reconnected. If the error is not lasting, useAgain also sends the query again
 * after the time that waitOf returns.
 */
export function useAgain(error: CombinedError | undefined, ask: (options: { requestPolicy: 'network-only' }) => void) {
  const { session } = useLink()
  useEffect(() => {
    if (!error || isLasting(error)) return
    const timer = setTimeout(() => ask({ requestPolicy: 'network-only' }), waitOf(error))
    return () => clearTimeout(timer)
  }, [error, ask])
  useEffect(() => {
    if (error) ask({ requestPolicy: 'network-only' })
  }, [session])
}
