// The routes of the page: the part of its address behind the #.
import { useEffect, useSyncExternalStore } from 'react'

/** Which markets are listed, and in which order. */
export interface Listing {
  query: string
  sort: string
  category: string
  tag: string
  view: string
  /** The only venue to search, or "" for all. */
  venue: string
}

export type Route =
  | { page: 'markets'; listing: Listing }
  | { page: 'market'; marketId: string; tokenId: string }
  | { page: 'event'; eventId: string }
  | { page: 'question'; questionId: string }
  | { page: 'watchlist' | 'portfolio' | 'questions' | 'unknown' }

/**
 * The address of a token's page. The address also contains the market's id. So the page can subscribe to the market and to the
 * token's price at the same time, without reading the market first.
 */
export const tokenPath = (marketId: string, tokenId: string) => `#/market/${encodeURIComponent(marketId)}/${encodeURIComponent(tokenId)}`

export const eventPath = (eventId: string) => `#/event/${encodeURIComponent(eventId)}`

/** The address of a question on several venues. */
export const questionPath = (questionId: string) => `#/question/${encodeURIComponent(questionId)}`

/** The address of a list. It omits empty values. */
export function listPath(listing: Listing): string {
  const set = Object.entries(listing).filter(([, value]) => value !== '')
  return set.length === 0 ? '#/' : `#/?${new URLSearchParams(set)}`
}

export function parse(hash: string): Route {
  const [path = '', search = ''] = hash.split('?', 2)
  const [, page = '', first, second, ...more] = path.split('/').map(decode)
  if (page === '') {
    const parameters = new URLSearchParams(search)
    const get = (name: string) => parameters.get(name) ?? ''
    return { page: 'markets', listing: { query: get('query'), sort: get('sort'), category: get('category'), tag: get('tag'), view: get('view'), venue: get('venue') } }
  }
  if (page === 'market' && first && second && more.length === 0) return { page, marketId: first, tokenId: second }
  if (page === 'event' && first && !second) return { page, eventId: first }
  if (page === 'question' && first && !second) return { page, questionId: first }
  if ((page === 'portfolio' || page === 'watchlist' || page === 'questions') && !first) return { page }
  return { page: 'unknown' }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return ''
  }
}

const replaced = new Set<() => void>()

/** Changes the address of the present page without adding an entry to the browser's history. */
export function replace(hash: string) {
  if (hash === (location.hash || '#/')) return
  history.replaceState(history.state, '', hash)
  for (const changed of replaced) changed()
}

function onChange(changed: () => void) {
  addEventListener('hashchange', changed)
  replaced.add(changed)
  return () => {
    removeEventListener('hashchange', changed)
    replaced.delete(changed)
  }
}

export const useHash = () => useSyncExternalStore(onChange, () => location.hash)

/**
 * Sets the scroll position and the focus of a page. After a click on a link, the new page starts at its top, with the focus on the
 * heading. Back and Forward restore the scroll position. They focus the link to the page that the user came from.
 */
export function usePlaces() {
  useEffect(() => {
    history.scrollRestoration = 'manual'
    let timer: ReturnType<typeof setTimeout>
    const keep = () => history.replaceState({ y: scrollY }, '')
    const scrolled = () => {
      clearTimeout(timer)
      const hash = location.hash // if the address changes before the timeout, the history entry belongs to another page
      timer = setTimeout(() => { if (location.hash === hash) keep() }, 100)
    }
    const clicked = () => {
      clearTimeout(timer) // the timer could store this page's position in the history entry of the next page
      keep()
    }
    const changed = ({ oldURL }: HashChangeEvent) => {
      clearTimeout(timer)
      const { y } = (history.state ?? {}) as { y?: number }
      requestAnimationFrame(() => {
        const followed = y === undefined ? null : document.querySelector<HTMLElement>(`main a[href="${CSS.escape(new URL(oldURL).hash)}"]`)
        const target = followed ?? document.querySelector<HTMLElement>('h1')
        target?.focus({ preventScroll: true })
        scrollTo(0, y ?? 0)
      })
    }
    addEventListener('scroll', scrolled)
    addEventListener('click', clicked, true)
    addEventListener('hashchange', changed)
    return () => {
      clearTimeout(timer)
      removeEventListener('scroll', scrolled)
      removeEventListener('click', clicked, true)
      removeEventListener('hashchange', changed)
    }
  }, [])
}

let title = ''
let unread = 0

const writeTitle = () => { document.title = `${unread > 0 ? `(${unread}) ` : ''}${title} · oddsgraph` }

/** Names the page in the browser's tab and to screen readers. */
export function useTitle(name: string) {
  useEffect(() => {
    title = name
    writeTitle()
  }, [name])
}

/** Shows the number of unread notices in parentheses before the page's name in the title. 0 shows nothing. */
export function setUnread(count: number) {
  unread = count
  writeTitle()
}
