// How old a value is, and whether it may be trusted.
import type { FreshnessFragment } from './__generated__/operations'
import { useNow } from './clock'
import { useLink } from './connection'
import { ago } from './format'

/** What is known of a value's age. */
export interface Heard {
  freshness: FreshnessFragment
  /** The session of the socket that brought it. */
  session: number
  /** The subscription that brought it has ended. */
  ended?: boolean
}

/** Whether a value may be out of date: the server says so, or what brought it is gone. */
export function useStale(heard: Heard | undefined): boolean {
  const link = useLink()
  return heard !== undefined && (heard.freshness.stale || heard.ended === true || link.state !== 'open' || heard.session !== link.session)
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
