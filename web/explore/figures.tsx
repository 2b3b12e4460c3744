// The line below the answer that says what it took: its cost, and where its values came from.

/** The members of extensions that this file reads. */
interface Extensions {
  cost?: { points: number }
  explain?: {
    elapsedMs: number
    upstreamCalls: number
    cache: Record<string, { hits: number; stale: number; absent: number; misses: number }>
  }
}

export function Figures({ extensions, asking, onAsk }: { extensions: unknown; asking: boolean; onAsk: (asking: boolean) => void }) {
  const { cost, explain } = (extensions ?? {}) as Extensions
  return (
    <div className="figures">
      <label>
        <input type="checkbox" checked={asking} onChange={event => onAsk(event.target.checked)} /> Ask for cost and explain
      </label>
      {cost && (
        <span>
          cost: {counted(cost.points, 'point')}
        </span>
      )}
      {explain && (
        <details>
          <summary>{taken(explain)}</summary>
          <pre tabIndex={0}>{JSON.stringify(explain, null, 2)}</pre>
        </details>
      )}
    </div>
  )
}

/** Returns one line that says how many calls, how much time and how many values an operation took. */
function taken({ elapsedMs, upstreamCalls, cache }: NonNullable<Extensions['explain']>): string {
  const kinds = Object.values(cache)
  const kept = kinds.reduce((sum, { hits, stale, absent }) => sum + hits + stale + absent, 0)
  const all = kinds.reduce((sum, { misses }) => sum + misses, kept)
  return `took: ${counted(upstreamCalls, 'call')}, ${elapsedMs.toFixed(1)} ms; ${kept} of ${counted(all, 'value')} from memory`
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
