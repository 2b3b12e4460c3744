// Events as cards. A card has a bar for each leading outcome of its event.
import type { ListedMarketFragment } from './__generated__/operations'
import { cents, reason } from './format'
import { candidates, usePrices } from './prices'
import { eventPath, tokenPath } from './route'
import { useVisible } from './visible'

const shown = 3

interface Group {
  eventId: string
  title: string
  markets: ListedMarketFragment[]
}

/** Groups markets by event, in the order of each event's first market. A market without an event becomes a group of one market. */
function grouped(markets: readonly ListedMarketFragment[]): Group[] {
  const groups = new Map<string, Group>()
  for (const market of markets) {
    const { event } = market
    const id = event?.eventId ?? market.marketId
    const group = groups.get(id) ?? { eventId: event?.eventId ?? '', title: event?.title ?? market.question ?? market.marketId, markets: [] }
    group.markets.push(market)
    groups.set(id, group)
  }
  return [...groups.values()]
}

export function EventCards({ markets }: { markets: readonly ListedMarketFragment[] }) {
  const [visible, observe] = useVisible()
  const groups = grouped(markets)
  const key = ({ markets }: Group) => markets[0]!.id
  const followed = groups.filter(group => visible.includes(key(group)))
  const { quotes, error } = usePrices(followed.flatMap(({ markets }) => markets.flatMap(({ tokens }) => candidates(tokens).map(({ tokenId }) => tokenId))).slice(0, 500).sort())
  const price = (tokenId: string) => Number(quotes[tokenId]?.price ?? -1)
  return (
    <>
      <ul className="cards">
        {groups.map(group => {
          const outcomes = group.markets
            .flatMap(market => candidates(market.tokens).map(token => ({ market, token, name: nameOf(market, token.outcome, group.markets.length) })))
            .sort((a, b) => price(b.token.tokenId) - price(a.token.tokenId))
          return (
            <li key={key(group)} ref={observe(key(group))} className="panel">
              <h2>{group.eventId ? <a href={eventPath(group.eventId)}>{group.title}</a> : group.title}</h2>
              {outcomes.slice(0, shown).map(({ market, token, name }) => (
                <a key={token.id} className="bar-row" href={tokenPath(market.marketId, token.tokenId)} style={{ '--share': `${100 * Math.max(0, price(token.tokenId))}%` } as object}>
                  <span>{name}</span><span className="figure">{price(token.tokenId) < 0 ? '…' : cents(price(token.tokenId))}</span>
                </a>
              ))}
              {outcomes.length > shown && <p className="detail">and {outcomes.length - shown} more</p>}
            </li>
          )
        })}
      </ul>
      {error && error.graphQLErrors.length > 0 && <p role="alert" className="notice">Prices: {reason(error)}</p>}
    </>
  )
}

/** The name of an outcome in a list of its event's outcomes. siblings is the number of the event's markets. */
export function nameOf(market: ListedMarketFragment, outcome: string | null | undefined, siblings: number): string {
  if (market.tokens.some(({ outcomeKind }) => outcomeKind === 'YES')) return siblings > 1 ? market.groupItemTitle ?? market.question ?? market.marketId : outcome ?? 'Yes'
  return siblings > 1 && market.groupItemTitle ? `${market.groupItemTitle}: ${outcome}` : outcome ?? ''
}
