// The venues of the service. With one venue, the page does not name it.
import { createContext, useContext } from 'react'

export interface Venue {
  name: string
  currency?: string | null
  demo: boolean
  status: { marketFilters: readonly string[] }
}

/** The venues, the first one first; empty while they are not known. */
export const VenuesContext = createContext<readonly Venue[]>([])

/** Returns the venue with a name; without a name the first venue, which may have none in ids. */
export function useVenue(name: string | null | undefined): Venue | undefined {
  const venues = useContext(VenuesContext)
  return venues.find(venue => venue.name === name) ?? venues[0]
}

/** The names of the venues if there are several. */
export function useVenueNames(): readonly string[] {
  const venues = useContext(VenuesContext)
  return venues.length > 1 ? venues.map(({ name }) => name) : []
}

/** Whether a venue can search for a text. Returns true while the venues are not known. */
export function useTextSearch(): boolean {
  const venues = useContext(VenuesContext)
  return venues.length === 0 || venues.some(({ status }) => status.marketFilters.includes('TEXT'))
}

/** The name of a market's venue, if there are several. */
export function VenueTag({ of }: { of: string | null | undefined }) {
  const name = useVenue(of)?.name
  return useVenueNames().length > 0 && <span className="tag venue">{name}</span>
}
