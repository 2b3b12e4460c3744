// The state of the connections: from the page to the server, and from the server to the venue's stream and REST API.
import { useEffect } from 'react'
import { useQuery } from 'urql'
import { ServiceDocument, type ServiceQuery, type StreamStatusSubscription } from './__generated__/operations'
import { useNow } from './clock'
import type { SocketStatus } from '../kit/socket'
import { useLink } from './connection'
import { time } from './format'
import { useStream } from './Stream'

const pollEvery = 5_000

/** Reads the state of the venue's REST API from the server every 5 seconds. This causes no calls to the venue. */
function useService() {
  const { state } = useLink()
  const [{ data }, ask] = useQuery({ query: ServiceDocument, pause: state !== 'open' })
  useEffect(() => {
    if (state !== 'open') return
    const timer = setInterval(() => ask({ requestPolicy: 'network-only' }), pollEvery)
    return () => clearInterval(timer)
  }, [state, ask])
  return data?.serviceStatus
}

export function Status() {
  const link = useLink()
  const stream = useStream()
  const service = useService()
  const now = useNow()
  const wait = service?.throttledUntil ? Math.ceil((Date.parse(service.throttledUntil) - now) / 1000) : 0
  const reachable = service?.upstreamReachable ?? true
  const first = describe(link, stream, reachable, wait > 0)
  const [state, text] = first[0] === 'down' ? first : service?.venues.slice(1).map(describeFurther).find(Boolean) ?? first
  return (
    <p className={`pill ${state}`} role="status" data-link={link.state} data-stream={stream?.state} data-venue={reachable ? 'reachable' : 'unreachable'}>
      <span>{text}{text.startsWith('Throttled') && <span aria-hidden="true">{`, ${wait} s`}</span>}</span>
    </p>
  )
}

type Stream = StreamStatusSubscription['streamStatusChanged'] | undefined

/** Returns a class name and words for the worst of the states. */
function describe(link: SocketStatus, stream: Stream, reachable: boolean, throttled: boolean): ['ok' | 'busy' | 'down', string] {
  if (link.state === 'connecting' || link.state === 'idle') return ['busy', 'Connecting']
  if (link.state !== 'open') return ['down', `Connection lost at ${time(link.since)}`]
  if (!reachable) return ['down', 'The venue does not answer']
  if (throttled) return ['down', 'Throttled by the venue']
  if (!stream) return ['busy', 'Connected']
  if (stream.state === 'LIVE') return ['ok', 'Live']
  if (stream.state === 'DISCONNECTED') {
    return stream.lastMessageAt ? ['down', `Stream down since ${time(stream.since)}`] : ['busy', 'Polling: the venue has no stream']
  }
  return ['busy', stream.state === 'RESYNCING' ? 'Catching up with the venue' : 'Waiting for the venue']
}

type Venue = ServiceQuery['serviceStatus']['venues'][number]

/** Returns the class name and words for a further venue that is down. */
function describeFurther({ name, upstreamReachable, stream }: Venue): ['down', string] | undefined {
  if (!upstreamReachable) return ['down', `${name} does not answer`]
  if (stream.state === 'DISCONNECTED' && stream.lastMessageAt) return ['down', `Stream of ${name} down since ${time(stream.since)}`]
}
