// How the connections do: the page's own socket, and behind the server the venue's stream.
import { useLink } from './connection'
import { time } from './format'
import { useStream } from './Stream'

export function Status() {
  const link = useLink()
  const stream = useStream()
  const [state, text] =
    link.state === 'connecting' ? ['waiting', 'Connecting'] as const
    : link.state !== 'open' ? ['down', `Connection lost at ${time(link.since)}, trying again`] as const
    : !stream ? ['waiting', 'Connected'] as const
    : stream.state === 'LIVE' ? ['live', 'Live'] as const
    : stream.state === 'DISCONNECTED' && !stream.lastMessageAt ? ['waiting', 'Prices are polled: no stream from the venue'] as const
    : stream.state === 'DISCONNECTED' ? ['down', `The venue's stream is down since ${time(stream.since)}`] as const
    : ['waiting', stream.state === 'RESYNCING' ? 'Catching up with the venue' : 'Waiting for the venue'] as const
  return <p className={`status ${state}`} role="status" data-link={link.state} data-stream={stream?.state}>{text}</p>
}
