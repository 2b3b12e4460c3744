// Errors of the graph: their codes, and when to send a query again.

import { errorCodes } from './schema.js'

export { errorCodes }

/** A value of extensions.code. */
export type ErrorCode = (typeof errorCodes)[number]

/** The part of an error of a response that the kit reads. */
export interface GraphError { readonly extensions?: Readonly<Record<string, unknown>> | undefined }

/**
 * Returns the messages of an error of Apollo Client, urql or fetch, or of the list errors of a response, each once. One failed read
 * is an entry for each field that needs it, so a joined message would say the same many times.
 */
export function messagesOf(error: unknown): string[] {
  if (!error) return []
  const { errors, graphQLErrors, message } = error as { errors?: unknown; graphQLErrors?: unknown; message?: unknown }
  const lists = [error, errors, graphQLErrors].filter(list => Array.isArray(list)).flat() as readonly { message?: unknown }[]
  const messages = (lists.length > 0 ? lists.map(({ message }) => message) : [message]).filter(text => typeof text === 'string')
  return [...new Set(messages)]
}

const retryable: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'RATE_LIMITED', 'UPSTREAM_BAD_RESPONSE', 'UPSTREAM_TIMEOUT', 'UPSTREAM_UNAVAILABLE',
])

/** Returns the code of an error, or undefined if the error has no code of ErrorCode. */
export function codeOf(error: GraphError): ErrorCode | undefined {
  const code = error.extensions?.['code']
  return errorCodes.find(known => known === code)
}

/** Reports whether a query with this error may succeed later without a change. */
export function isRetryable(error: GraphError): boolean {
  const code = codeOf(error)
  return code !== undefined && retryable.has(code)
}

/** Reports whether a response has no data: every field of the operation is null. */
const isEmpty = (data: unknown): boolean => !data || Object.values(data).every(value => value === null)

/** The longest wait in milliseconds before retryLink and retryExchange request a query again. */
const longestWait = 60_000

/**
 * Returns how many milliseconds to wait before sending a query with these errors again, or undefined if no error is retryable.
 * attempt is 0 for the first retry. The service's retryAfterMs is the shortest wait. Without retryAfterMs the wait doubles from one
 * second to half a minute. A random part of up to a quarter is added, so that clients do not all retry at the same moment.
 */
export function retryDelay(errors: readonly GraphError[], attempt: number): number | undefined {
  const again = errors.filter(isRetryable)
  if (again.length === 0) return undefined
  const asked = again.map(error => error.extensions?.['retryAfterMs']).filter(ms => typeof ms === 'number' && ms >= 0)
  const delay = Math.max(...(asked as number[]), asked.length > 0 ? 0 : Math.min(30_000, 1000 * 2 ** attempt))
  return delay * (1 + Math.random() / 4)
}

/**
 * Returns how many milliseconds retryLink and retryExchange wait before they send a query again. It returns undefined if they have
 * to deliver the response: the response has data, no error is retryable, the wait is too long, or no attempts are left. attempt is
 * 0 for the first retry.
 */
export function delayOf(data: unknown, errors: readonly GraphError[], attempt: number, attempts: number): number | undefined {
  if (attempt >= attempts || !isEmpty(data)) return undefined
  const delay = retryDelay(errors, attempt)
  return delay !== undefined && delay <= longestWait ? delay : undefined
}

/** A request that got no GraphQL response. */
export interface Failure {
  /** The HTTP status; undefined if there was no response at all. */
  readonly status?: number | undefined
  /** The header Retry-After. */
  readonly retryAfter?: string | null | undefined
}

/** The statuses with which a proxy, a load balancer or the service refuses a request that may succeed later. */
const busy: ReadonlySet<number> = new Set([429, 502, 503, 504])

/**
 * Returns how many milliseconds retryLink and retryExchange wait before they repeat a failed request. It returns undefined if they
 * have to deliver the failure. Only requests without a response, or with status 429, 502, 503 or 504, are repeated.
 */
export function delayOfFailure({ status, retryAfter }: Failure, attempt: number, attempts: number): number | undefined {
  if (status !== undefined && !busy.has(status)) return undefined
  const seconds = retryAfter?.trim() ? Number(retryAfter) : NaN
  const extensions = { code: 'UPSTREAM_UNAVAILABLE', retryAfterMs: seconds >= 0 ? seconds * 1000 : undefined }
  return delayOf(undefined, [{ extensions }], attempt, attempts)
}
