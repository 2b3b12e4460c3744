// The page's routes: what stands behind the # of its address.
import { useEffect, useSyncExternalStore } from 'react'

export type Route = { page: 'markets' } | { page: 'market'; marketId: string; tokenId: string } | { page: 'portfolio' }

/** The address of a token's page. It names the market too, so that nothing has to be asked before both are followed. */
export const tokenPath = (marketId: string, tokenId: string) => `#/market/${encodeURIComponent(marketId)}/${encodeURIComponent(tokenId)}`

export function parse(hash: string): Route {
  const [, page, marketId, tokenId] = hash.split('/').map(decode)
  if (page === 'market' && marketId && tokenId) return { page, marketId, tokenId }
  return { page: page === 'portfolio' ? page : 'markets' }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return ''
  }
}

function onChange(changed: () => void) {
  addEventListener('hashchange', changed)
  return () => removeEventListener('hashchange', changed)
}

export const useHash = () => useSyncExternalStore(onChange, () => location.hash)

/** Names the page in the browser's tab and to screen readers. */
export function useTitle(title: string) {
  useEffect(() => {
    document.title = `${title} · oddsgraph`
  }, [title])
}
