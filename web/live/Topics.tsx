// The venue's categories or tags with the number of their open markets, as filters of the list.
import { useQuery } from 'urql'
import { CategoriesDocument } from './__generated__/operations'
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
  const isPressed = ({ category, tag }: { category?: string | null; tag?: string | null }) => category ? listing.category === category : listing.tag === tag
  return (
    <div className="chips" role="group" aria-label="Categories">
      <button type="button" aria-pressed={listing.view === 'events'} onClick={() => onChange({ view: listing.view === 'events' ? '' : 'events' })}>By event</button>
      {data?.categories?.filter((topic, i) => i < shown || isPressed(topic)).map(topic => {
        const { name, category, tag, openMarkets, complete } = topic
        const pressed = isPressed(topic)
        return (
          <button
            key={name} type="button" aria-pressed={pressed}
            onClick={() => onChange(pressed ? { category: '', tag: '' } : { category: category ?? '', tag: tag ?? '' })}
          >
            {name} <span className="count">{count(openMarkets)}{complete ? '' : '+'}</span>
          </button>
        )
      })}
    </div>
  )
}
