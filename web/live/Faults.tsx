// Causes faults at the demo venue, to show how the page deals with them.
import { useState } from 'react'
import type { Route } from './route'
import { controlOf } from './useFaults'
import type { Venue } from './Venue'

async function post(path: string, body: object) {
  const response = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(await response.text())
}

/** The faults that last until the user ends them. */
const lasting = {
  'Drop stream': { on: 'opens', kind: 'status', status: 503 },
  Throttle: { kind: 'status', status: 429, retryAfter: '30' },
  Outage: { kind: 'status', status: 503 },
  'Slow answers': { kind: 'delay', delayMs: 3000 },
  'Dripping answers': { kind: 'drip', delayMs: 20 },
  'Old answers': { kind: 'stale', delayMs: 10_000 },
  'Cut answers': { kind: 'truncate' },
  'Wrong JSON': { kind: 'json' },
  'Broken connections': { kind: 'reset' },
  'Lost frames': { on: 'frames', kind: 'drop', probability: 0.3 },
  'Late frames': { on: 'frames', kind: 'delay', delayMs: 2000, probability: 0.3 },
  'Reordered frames': { on: 'frames', kind: 'reorder', behind: 8, probability: 0.3 },
  'Repeated frames': { on: 'frames', kind: 'duplicate', probability: 0.3 },
  'Frozen stream': { on: 'frames', kind: 'freeze', delayMs: 60_000 },
  'Closed streams': { on: 'frames', kind: 'close', probability: 0.02 },
} as const

type Name = keyof typeof lasting

/** The panel of the embedded venue that the user chooses. The first venue is that without a name in ids. */
export default function Faults({ route, venues }: { route: Route; venues: readonly Venue[] }) {
  const [chosen, setChosen] = useState(0)
  return (
    <section className="faults" aria-label="Faults of the demo venue">
      <p>Cause a fault at the demo venue{venues.filter(({ demo }) => demo).length > 1 && (
        <select aria-label="Demo venue" value={chosen} onChange={event => setChosen(Number(event.target.value))}>
          {venues.map(({ name, demo }, i) => demo && <option key={name} value={i}>{name}</option>)}
        </select>
      )}:</p>
      {venues.map(({ name, demo }, i) => demo && <Panel key={name} route={route} venue={i > 0 ? name : undefined} names={venues.slice(1).map(({ name }) => name)} hidden={i !== chosen} />)}
    </section>
  )
}

function Panel({ route, venue, names, hidden }: { route: Route; venue: string | undefined; names: readonly string[]; hidden: boolean }) {
  const [active, setActive] = useState<readonly Name[]>([])
  const [said, setSaid] = useState('')
  const send = (action: string, body: object) => post(controlOf(venue, action), body)
  const own = (id: string) => venue ? id.slice(venue.length + 1) : id
  const isHere = (id: string) => venue ? id.startsWith(`${venue}:`) : !names.some(name => id.startsWith(`${name}:`))
  const run = (what: string, work: () => Promise<unknown>) => work().then(() => setSaid(what), () => setSaid('The server refused this.'))
  const apply = async (names: readonly Name[]) => {
    await send('faults', { faults: names.map(name => lasting[name]) })
    setActive(names)
  }
  const change = (name: Name) => run(active.includes(name) ? `${name}: ended` : `${name}: begun`, async () => {
    await apply(active.includes(name) ? active.filter(other => other !== name) : [...active, name])
    if (name === 'Drop stream' && !active.includes(name)) await send('restart', { code: 4003 }) // closes the open streams
  })
  const resolve = async () => {
    if (route.page === 'market') await send('market', { marketId: own(route.marketId), winningTokenId: route.tokenId && own(route.tokenId) })
  }
  return (
    <div hidden={hidden}>
      <div className="chips">
        {(Object.keys(lasting) as Name[]).map(name => <button key={name} type="button" aria-pressed={active.includes(name)} onClick={() => change(name)}>{name}</button>)}
        <button type="button" onClick={() => run('The venue has restarted.', () => send('restart', { code: 4003 }))}>Restart</button>
        {route.page === 'market' && isHere(route.marketId) && <button type="button" onClick={() => run('This outcome has won.', resolve)}>Resolve this market</button>}
        <button type="button" onClick={() => run('All faults are repaired.', async () => { await send('reset', {}); setActive([]) })}>Repair all</button>
      </div>
      <p role="status">{said}</p>
    </div>
  )
}
