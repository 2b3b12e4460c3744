// The state of the connection from the server to the venue's stream. All components that show this state share one subscription.
import { createContext, useContext, type ReactNode } from 'react'
import { StreamStatusDocument, type StreamStatusSubscription } from './__generated__/operations'
import { useLive } from './live'

const StreamContext = createContext<StreamStatusSubscription['streamStatusChanged'] | undefined>(undefined)

export function Stream({ children }: { children: ReactNode }) {
  const { data } = useLive({ query: StreamStatusDocument })
  return <StreamContext value={data?.streamStatusChanged}>{children}</StreamContext>
}

/** The last reported state of the stream; undefined before the first event. */
export const useStream = () => useContext(StreamContext)
