// How old a value is, and whether it may be trusted.
import type { FreshnessFragment } from './__generated__/operations'
import { useNow } from './clock'
import { useLink } from './connection'
import { ago } from './format'

/** What was shown with a value, and the session of the socket that brought it. */
export interface Heard {
  freshness: FreshnessFragment
  session: number
}

/** Whether a value may be out of date: the server says so, or the connection that brought it is gone. */
export function useStale(heard: Heard | undefined): boolean {
  const link = useLink()
  return heard !== undefined && (heard.freshness.stale || link.state !== 'open' || heard.session !== link.session)
}

export function Freshness({ heard }: { heard: Heard | undefined }) {
  const stale = useStale(heard)
  const now = useNow()
  if (!heard) return <span className="freshness">…</span>
  const { asOf, receivedAt, source } = heard.freshness
  const computed = source === 'COMPUTED' // from values of many ages
  return (
    <span className={stale ? 'freshness stale' : 'freshness'} data-stale={stale} title={`${source.toLowerCase()}, ${asOf ?? receivedAt}`}>
      {stale ? 'Stale' : source === 'STREAM' || computed ? 'Live' : 'Current'}
      {!computed && ` · ${ago(asOf ?? receivedAt, now)} ago`}
    </span>
  )
}
