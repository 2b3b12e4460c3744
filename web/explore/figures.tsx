// The line below a response: the cost of the operation, its calls and its time, and how many values came from the cache.

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

/** Returns a line with the calls and the time of an operation, and how many of its values came from the cache. */
function taken({ elapsedMs, upstreamCalls, cache }: NonNullable<Extensions['explain']>): string {
  const kinds = Object.values(cache)
  const kept = kinds.reduce((sum, { hits, stale, absent }) => sum + hits + stale + absent, 0)
  const all = kinds.reduce((sum, { misses }) => sum + misses, kept)
  return `took: ${counted(upstreamCalls, 'call')}, ${elapsedMs.toFixed(1)} ms; ${kept} of ${counted(all, 'value')} from memory`
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
