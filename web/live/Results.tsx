// The results of a search, page after page. The page remembers the rows, so that Back shows them again.
import { useEffect, useMemo, useRef, useState } from 'react'
import { useQuery, type TypedDocumentNode } from 'urql'
import {
  SearchEventsDocument, SearchMarketsDocument, type ListedMarketFragment, type SearchEventsQuery, type SearchMarketsQuery, type SearchMarketsQueryVariables,
} from './__generated__/operations'
import { EventCards, type EventItem } from './EventCards'
import { count, reason } from './format'
import { isLasting, useAgain } from './live'
import { MarketTable } from './MarketTable'
import { remember } from './names'
import { isOfServer, searched, type Sort } from './sorts'
import { Source } from './Source'

const pageSize = 25

type Item = ListedMarketFragment | EventItem

interface Rows {
  items: Item[]
  /** The cursor after which the last page begins. */
  after: string | undefined
}

/** The rows of each list that was shown. unsorted is the reason why the venue did not sort the list, or "" if it did. */
const kept = new Map<string, Rows & { unsorted: string }>()

interface Props {
  query: string
  /** The names of the venues to search; empty for the only one. */
  venues: readonly string[]
  category: string
  tag: string
  sort: Sort
  /** Shows events as cards instead of rows. */
  cards: boolean
  onSort: (sort: Sort) => void
  /** Is called with a sentence about the number of results. */
  onFound: (found: string) => void
  /** Is called to clear the search. */
  onClear: () => void
}

interface Page {
  items: readonly Item[]
  pageInfo: { hasNextPage: boolean; endCursor?: string | null }
  totalCount?: number | null
}

type Answer = SearchMarketsQuery | SearchEventsQuery

/** The page of markets, or of events with their matching markets. */
function pageOf(data: Answer | undefined): Page | undefined {
  if (data && 'searchMarkets' in data) return data.searchMarkets ? { ...data.searchMarkets, items: data.searchMarkets.nodes } : undefined
  const found = data && 'searchEvents' in data ? data.searchEvents : undefined
  return found ? { ...found, items: found.edges.map(({ node, matches }) => ({ ...node, title: node.title ?? null, markets: matches })) } : undefined
}

export function Results({ query, venues, category, tag, sort, cards, onSort, onFound, onClear }: Props) {
  const key = JSON.stringify([query, venues, category, tag, sort, cards])
  const [{ items, after }, setRows] = useState<Rows>(() => kept.get(key) ?? { items: [], after: undefined })
  const [unsorted, setUnsorted] = useState(() => kept.get(key)?.unsorted ?? '') // the reason why the venue does not sort the list; "" if it does
  const order = unsorted ? { sort: 'RELEVANCE', order: 'DESC' } as const : searched(sort)
  const variables = { query, category: category || null, tag: tag || null, ...order, first: pageSize, after, venues: venues.length > 0 ? [...venues] : null }
  const document: TypedDocumentNode<Answer, SearchMarketsQueryVariables> = cards ? SearchEventsDocument : SearchMarketsDocument
  const [{ data, error, fetching }, ask] = useQuery({ query: document, variables, requestPolicy: 'cache-and-network' })
  const page = useMemo(() => pageOf(data), [data])
  useEffect(() => {
    if (!page) return
    setRows(({ items, after }) => ({ items: [...new Map([...items, ...page.items].map(item => [item.id, item])).values()], after }))
  }, [page])
  useEffect(() => {
    remember(items.flatMap(item => ('markets' in item ? item.markets : [item])))
    if (items.length > 0) kept.set(key, { items, after, unsorted })
  }, [key, items, after, unsorted])
  useAgain(error, ask)
  useEffect(() => {
    if (error?.graphQLErrors[0]?.extensions.code !== 'UNSUPPORTED' || unsorted || page && (query || category || tag)) return
    setUnsorted(reason(error))
    setRows({ items: [], after: undefined }) // the rows of the venues that can sort
  }, [error])

  const empty = page?.items.length === 0 && items.length === 0 // there may be further pages, because a page can be empty
  const none = empty && !page.pageInfo.hasNextPage
  const total = page?.totalCount
  const kind = cards ? 'event' : 'market'
  useEffect(() => {
    if (page) onFound(none ? 'No open market fits.' : total == null ? '' : `${count(total)} open ${total === 1 ? kind : `${kind}s`}`)
  }, [page, none, total, kind, onFound])

  // When a further page arrives, the focus moves from the button to the first new row.
  const links = () => globalThis.document.querySelectorAll<HTMLElement>('.markets tbody a, .cards h2 a')
  const next = useRef<number>(undefined)
  useEffect(() => {
    const link = next.current === undefined ? undefined : links()[next.current]
    if (!link) return
    next.current = undefined
    link.focus()
  }, [items])
  const more = () => {
    if (fetching) return
    next.current = links().length
    setRows({ items, after: page?.pageInfo.endCursor ?? undefined })
  }

  if (items.length === 0 && error) {
    return (
      <>
        <p role="alert">The markets could not be read: {reason(error)}</p>
        <div className="panel nothing">
          {isLasting(error) ? <a className="button" href="#/" onClick={onClear}>Show all markets</a> : <>
            <p>They are read again as soon as the server allows it.</p>
            <button type="button" onClick={() => ask({ requestPolicy: 'network-only' })}>Try again now</button>
          </>}
        </div>
      </>
    )
  }
  if (none) {
    return (
      <div className="panel nothing">
        <h2>{query ? `No open market fits “${query}”` : 'No open market here'}</h2>
        <p>Try another word, or fewer.</p>
        <a className="button" href="#/" onClick={onClear}>Show all markets</a>
      </div>
    )
  }
  return (
    <>
      {unsorted && <p role="status" className="notice">Not sorted: {unsorted}.</p>}
      {empty ? <div className="panel nothing"><p>No open market was found so far.</p></div> : cards
        ? <EventCards events={items as EventItem[]} />
        : <MarketTable markets={items as ListedMarketFragment[]} sort={unsorted && isOfServer(sort) ? undefined : sort} onSort={onSort} caption="Open markets with the live price of the leading outcome" />}
      {error && <p role="alert">{page ? 'Some markets could not' : 'No more markets could'} be read: {reason(error)}</p>}
      <p className="below">
        {page?.pageInfo.hasNextPage && <button type="button" aria-disabled={fetching} onClick={more}>More markets</button>}
        <Source of="Markets" document={document} variables={variables} />
      </p>
    </>
  )
}
