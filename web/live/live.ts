// Subscriptions of urql that start again after the server has ended them.
import { useEffect, useState } from 'react'
import { useSubscription, type AnyVariables, type CombinedError, type SubscriptionHandler, type UseSubscriptionArgs } from 'urql'
import { useLink } from './connection'

const pause = 3_000

/** The codes of errors that the same request would get again. */
const lasting = ['BAD_USER_INPUT', 'UNAUTHENTICATED', 'FORBIDDEN', 'UNSUPPORTED', 'GRAPHQL_VALIDATION_FAILED']

/** Whether the same request would get this error again. */
export const isLasting = (error: CombinedError | undefined) =>
  error?.graphQLErrors.some(({ extensions }) => lasting.includes(String(extensions.code))) ?? false

interface Live<Result> {
  data: Result | undefined
  error: CombinedError | undefined
  /** The subscription has ended, at least for now, so the data may be out of date. */
  ended: boolean
  restart: () => void
}

/**
 * Follows a subscription. The socket reconnects by itself, and each subscription then delivers its present state again. An error,
 * for example because this page reads too slowly, ends a single subscription, which useLive starts again.
 */
export function useLive<Data, Result = Data, Variables extends AnyVariables = AnyVariables>(
  args: UseSubscriptionArgs<Variables, Data>, handler?: SubscriptionHandler<Data, Result>,
): Live<Result> {
  const link = useLink()
  const [state, restart] = useSubscription<Data, Result, Variables>(args, handler)
  const { data, error, hasNext } = state as typeof state & { hasNext: boolean } // the declared type lacks hasNext
  // urql drops the data when an error arrives. The last data stays visible, marked as ended.
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

/** Returns how long to wait before a failed query is sent again, in milliseconds: as long as the server asks for, or else 5 seconds. */
export const waitOf = (error: CombinedError) =>
  Math.max(0, ...error.graphQLErrors.map(({ extensions }) => Number(extensions.retryAfterMs) || 0)) || 5_000

/**
 * Repeats a query that has failed: after the socket has reconnected and, unless the error is lasting, after the wait that the
 * server asks for, or else 5 seconds.
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
