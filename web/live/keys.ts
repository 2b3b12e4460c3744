// The keyboard shortcuts of the page.
import { useEffect } from 'react'

/** The pages: name, address and keys. */
export const pages = [
  ['Markets', '#/', 'g m'],
  ['Watchlist', '#/watchlist', 'g w'],
  ['Portfolio', '#/portfolio', 'g p'],
  ['GraphiQL', './', 'g q'],
] as const

const isTyping = (target: EventTarget | null) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName))

/** Moves the focus by some rows of a list. */
function move(by: number) {
  const links = [...document.querySelectorAll<HTMLElement>('main :is(.markets, .positions) tbody a, main .bar-row')]
  const at = links.indexOf(document.activeElement as HTMLElement)
  const next = links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

/** Handles these keys: / searches, j and k move to the next and previous row, g and a letter open a page, Ctrl+K the palette. */
export function useKeys(openPalette: () => void) {
  useEffect(() => {
    let before = ''
    const pressed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
        event.preventDefault()
        return openPalette()
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector('dialog[open]')) return
      const page = pages.find(([, , keys]) => keys === `${before} ${event.key}`)
      before = event.key
      const search = document.querySelector<HTMLInputElement>('input[type=search]')
      if (page) location.assign(page[1])
      else if (event.key === '/' && search) search.select()
      else if (event.key === '/') openPalette()
      else if (event.key === 'j' || event.key === 'k') move(event.key === 'j' ? 1 : -1)
      else return
      event.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [openPalette])
}
