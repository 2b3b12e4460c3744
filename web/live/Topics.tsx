// The venue's categories or tags with the number of their open markets, as filters of the list.
import { useQuery } from 'urql'
import { CategoriesDocument, ServiceDocument } from './__generated__/operations'
import { count } from './format'
import { useAgain } from './live'
import type { Listing } from './route'

/** The number of topics that are shown: the topics with the most open markets. A selected topic is always shown. */
const shown = 20

interface Props {
  listing: Listing
  onChange: (changed: Partial<Listing>) => void
}

export function Topics({ listing, onChange }: Props) {
  const [{ data, error }, ask] = useQuery({ query: CategoriesDocument })
  useAgain(error, ask)
  const [{ data: service }] = useQuery({ query: ServiceDocument })
  const filters = service?.serviceStatus.venue?.marketFilters
  // Whether the venue filters its events by topic, but not its markets.
  const onlyEvents = filters !== undefined && !filters.includes('CATEGORY') && !filters.includes('TAG')
  const none = { category: '', tag: '' }
  const isPressed = ({ category, tag }: { category?: string | null; tag?: string | null }) => category ? listing.category === category : listing.tag === tag
  return (
    <div className="chips" role="group" aria-label="Categories">
      <button type="button" aria-pressed={listing.view === 'events'} onClick={() => onChange(listing.view === 'events' ? { view: '', ...(onlyEvents && none) } : { view: 'events' })}>By event</button>
      {data?.categories?.filter((topic, i) => i < shown || isPressed(topic)).map(topic => {
        const { name, category, tag, openMarkets, complete } = topic
        const pressed = isPressed(topic)
        return (
          <button
            key={name} type="button" aria-pressed={pressed}
            onClick={() => onChange(pressed ? none : { category: category ?? '', tag: tag ?? '', ...(onlyEvents && { view: 'events' }) })}
          >
            {name} <span className="count">{count(openMarkets)}{complete ? '' : '+'}</span>
          </button>
        )
      })}
    </div>
  )
}
