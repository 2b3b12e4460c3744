// The list of markets. The address contains the text of the search, the categories and the order.
import { useDeferredValue, useEffect, useState } from 'react'
import { useQuery } from 'urql'
import { ServiceDocument, type MarketSort } from './__generated__/operations'
import { replace, listPath, useTitle, type Listing } from './route'
import { Results } from './Results'
import { sortOf, sortText } from './sorts'
import { Topics } from './Topics'
import { useTextSearch, useVenueNames } from './Venue'

/** The orders of the menu: the name, the sort in the address, and what the venue must be able to sort by. */
const orders: readonly (readonly [name: string, sort: string, key: MarketSort])[] = [
  ['Most traded today', '', 'VOLUME_24H'], ['Most liquid', '-liquidity', 'LIQUIDITY'], ['Newest', '-starts', 'STARTS_AT'],
  ['Ending soon', 'ends', 'ENDS_AT'], ['Rising most today', '-rise', 'PRICE_CHANGE_24H'],
]

/** The name of the order of a venue that cannot sort by volume. */
const unsorted = ['Venue’s order', '', 'RELEVANCE'] as const

/** Whether the user probably has a keyboard. */
const hasKeys = matchMedia('(pointer: fine)')

export function Markets({ listing }: { listing: Listing }) {
  const [text, setText] = useState(listing.query)
  const [found, setFound] = useState('')
  const query = useDelayed(text.trim(), 250)
  const change = (changed: Partial<Listing>) => replace(listPath({ ...listing, query, ...changed }))
  useEffect(() => change({}), [query]) // writes the text of the search to the address
  useTitle('Markets')
  const [{ data: service }] = useQuery({ query: ServiceDocument })
  const sorts = service?.serviceStatus.venue?.marketSorts
  const offered = orders.filter(([, , key]) => !sorts || sorts.includes(key))
  const menu = offered[0]?.[1] === '' ? offered : [unsorted, ...offered]
  const searchable = useTextSearch()
  const names = useVenueNames()
  const venues = names.filter(name => !listing.venue || name === listing.venue)
  const own = menu.some(([, sort]) => sort === listing.sort) ? [] : ['As sorted']
  return (
    <>
      <div className="bar">
        <h1 tabIndex={-1}>Markets</h1>
        <form role="search" onSubmit={event => event.preventDefault()}>
          {searchable && (
            <label>
              <span className="unseen">Search the markets</span>
              <input type="search" value={text} onChange={event => setText(event.target.value)} placeholder={hasKeys.matches ? 'Search the markets ( / )' : 'Search the markets'} />
            </label>
          )}
          <label>
            <span className="unseen">Order</span>
            <select
              value={menu.find(([, sort]) => sort === listing.sort)?.[0] ?? 'As sorted'}
              onChange={event => change({ sort: menu.find(([name]) => name === event.target.value)?.[1] ?? listing.sort })}
            >
              {[...menu.map(([name]) => name), ...own].map(name => <option key={name}>{name}</option>)}
            </select>
          </label>
          {names.length > 0 && (
            <label>
              <span className="unseen">Venue</span>
              <select value={listing.venue} onChange={event => change({ venue: event.target.value })}>
                <option value="">All venues</option>
                {names.map(name => <option key={name}>{name}</option>)}
              </select>
            </label>
          )}
        </form>
        <Topics listing={listing} onChange={change} />
        <p className="found" role="status">{found}</p>
      </div>
      <Results
        key={`${query}\n${listing.sort}\n${listing.category}\n${listing.tag}\n${listing.view}\n${venues}`} query={query} venues={venues} category={listing.category} tag={listing.tag} sort={sortOf(listing.sort)}
        cards={listing.view === 'events'} onSort={sort => change({ sort: sortText(sort) })} onFound={setFound} onClear={() => setText('')}
      />
    </>
  )
}

/** Returns the last value that stayed the same for the given number of milliseconds. */
function useDelayed<T>(value: T, milliseconds: number): T {
  const [delayed, setDelayed] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), milliseconds)
    return () => clearTimeout(timer)
  }, [value, milliseconds])
  return useDeferredValue(delayed)
}
