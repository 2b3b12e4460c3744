// The age of a value, and whether it may be out of date.
import type { FreshnessFragment } from './__generated__/operations'
import { useNow } from './clock'
import { useLink } from './connection'
import { ago } from './format'

/** The age of a value and where it came from. */
export interface Heard {
  freshness: FreshnessFragment
  /** The session of the socket that delivered the value. */
  session: number
  /** Whether the subscription that delivered the value has ended. */
  ended?: boolean
}

/** Whether a value may be out of date: the server marked it as stale, or its subscription has ended or lost its socket. */
export function useStale(heard: Heard | undefined): boolean {
  const link = useLink()
  return heard !== undefined && (heard.freshness.stale || heard.ended === true || link.state !== 'open' || heard.session !== link.session)
}

/** The age of a value in words. A final value, such as the price of a resolved market, has the word "Final" in place of an age. */
export function Freshness({ heard, final = false }: { heard: Heard | undefined; final?: boolean }) {
  const stale = useStale(heard)
  const now = useNow()
  if (!heard) return <span className="freshness">…</span>
  const { asOf, receivedAt, source } = heard.freshness
  if (final) return <span className="freshness" data-stale="false">Final</span>
  const live = source === 'STREAM' && !stale
  const computed = source === 'COMPUTED' // has no single age: the values behind it differ in age
  return (
    <span className={stale ? 'freshness stale' : 'freshness'} data-stale={stale} title={`${source.toLowerCase()}, ${asOf ?? receivedAt}`}>
      {stale ? 'Stale' : source === 'STREAM' || computed ? 'Live' : 'Current'}
      {!computed && ` · ${live ? 'changed ' : ''}${ago(asOf ?? receivedAt, now)} ago`}
    </span>
  )
}

/** Marks a stale value in a row of a table. A current value has no mark. */
export function StaleMark({ heard }: { heard: Heard | undefined }) {
  const stale = useStale(heard)
  return stale ? <span className="freshness stale" data-stale="true">Stale</span> : null
}
