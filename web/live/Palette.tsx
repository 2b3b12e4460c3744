// The command palette: finds pages and markets by a few letters.
import { useEffect, useRef, useState } from 'react'
import { Command } from 'cmdk'
import { useQuery } from 'urql'
import { SearchMarketsDocument } from './__generated__/operations'
import { pages } from './keys'
import { tokenPath } from './route'
import { useTextSearch } from './Venue'

export default function Palette({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const searchable = useTextSearch()
  const pause = !searchable && text.trim() !== '' // then only pages fit
  const [{ data }] = useQuery({
    query: SearchMarketsDocument, pause, variables: { query: text.trim(), category: null, tag: null, sort: 'RELEVANCE', order: 'DESC', first: 8 }, requestPolicy: 'cache-first',
  })
  useEffect(() => {
    dialog.current!.showModal() // focuses the list of the palette
    dialog.current!.querySelector('input')!.focus()
  }, [])
  const go = (path: string) => {
    dialog.current!.close()
    if (path.startsWith('#')) location.hash = path
    else location.assign(path)
  }
  const fits = ([name]: readonly [string, string, string]) => name.toLowerCase().includes(text.trim().toLowerCase())
  return (
    <dialog ref={dialog} className="sheet palette" aria-label="Go to" onClose={onClose} onClick={event => event.target === dialog.current && dialog.current.close()}>
      <Command label="Go to" shouldFilter={false}>
        <Command.Input value={text} onValueChange={setText} placeholder={searchable ? 'A page or a market' : 'A page'} />
        <Command.List>
          <Command.Empty>Nothing fits.</Command.Empty>
          {pages.filter(fits).map(([name, path, keys]) => (
            <Command.Item key={path} value={path} onSelect={() => go(path)}>{name}<kbd>{keys}</kbd></Command.Item>
          ))}
          {!pause && data?.searchMarkets?.nodes.map(({ id, marketId, question, groupItemTitle, tokens: [token] }) => token && (
            <Command.Item key={id} value={id} onSelect={() => go(tokenPath(marketId, token.tokenId))}>{question ?? marketId}{groupItemTitle && <span className="tag">{groupItemTitle}</span>}</Command.Item>
          ))}
        </Command.List>
      </Command>
    </dialog>
  )
}
