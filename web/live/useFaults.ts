// Whether the page may cause faults at the demo venue.
import { useEffect, useState } from 'react'

const control = 'demo/control'

/** The path of a control endpoint of an embedded venue; of the first one without a name. */
export const controlOf = (venue: string | undefined, action: string) => `${control}/${venue ? `${venue}/` : ''}${action}`

/** Whether the server lets its pages control the venue. Only a server with the demo venue may allow this. */
export function useFaults(demo: boolean): boolean {
  const [allowed, setAllowed] = useState(false)
  useEffect(() => {
    if (!demo) return
    const stop = new AbortController()
    fetch(control, { signal: stop.signal }).then(response => response.json()).then(answer => setAllowed(answer.allowed === true), () => {})
    return () => stop.abort()
  }, [demo])
  return allowed
}
