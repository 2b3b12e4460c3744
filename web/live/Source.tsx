// The button "</>" of a panel. It opens a dialog with the panel's operation, its cost, and the code that sends it. A switch in the
// header of the page shows and hides all of these buttons.
import { createContext, useContext, useEffect, useRef, useState } from 'react'
import { stringifyDocument, type AnyVariables, type DocumentInput } from 'urql'
import { explorePath, languages, snippet } from '../design/snippets'

interface Props {
  /** The panel that the operation belongs to. */
  of: string
  document: DocumentInput<unknown, any>
  variables: AnyVariables
}

/** Whether panels have the button. */
export const QueriesContext = createContext(false)

const stored = 'oddsgraph:queries'

/** The state of the switch, which the browser keeps. */
export function useQueries(): [shown: boolean, toggle: () => void] {
  const [shown, setShown] = useState(() => localStorage.getItem(stored) === 'shown')
  const toggle = () => {
    localStorage.setItem(stored, shown ? 'hidden' : 'shown')
    setShown(!shown)
  }
  return [shown, toggle]
}

const endpoint = new URL('graphql', location.href).href

export function Source({ of, document, variables }: Props) {
  const [open, setOpen] = useState(false)
  if (!useContext(QueriesContext)) return null
  return (
    <>
      <button type="button" className="source" aria-label={`Query of ${of}`} title="The query behind this panel" onClick={() => setOpen(true)}>{'</>'}</button>
      {open && <Sheet of={of} document={document} variables={variables} onClose={() => setOpen(false)} />}
    </>
  )
}

function Sheet({ of, document, variables, onClose }: Props & { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [language, setLanguage] = useState<'GraphQL' | (typeof languages)[number]>('GraphQL')
  const operation = { query: stringifyDocument(document).trim(), variables: JSON.stringify(variables, null, 2) }
  const code = language === 'GraphQL' ? `${operation.query}\n\n# variables\n${operation.variables}` : snippet(language, operation, endpoint)
  useEffect(() => dialog.current!.showModal(), [])
  return (
    <dialog ref={dialog} className="sheet" aria-label={`Query of ${of}`} onClose={onClose} onClick={event => event.target === dialog.current && dialog.current.close()}>
      <header>
        <h2>{of}</h2>
        <button type="button" onClick={() => dialog.current!.close()}>Close</button>
      </header>
      <div className="bar">
        <div className="chips" role="group" aria-label="Language">
          {(['GraphQL', ...languages] as const).map(name => (
            <button key={name} type="button" aria-pressed={name === language} onClick={() => setLanguage(name)}>{name}</button>
          ))}
        </div>
        <Copy text={code} />
        <a className="button" href={explorePath(operation)}>Open in GraphiQL</a>
      </div>
      <pre tabIndex={0} role="group" aria-label="Code">{code}</pre>
      <Cost {...operation} />
    </dialog>
  )
}

function Copy({ text }: { text: string }) {
  const [copied, setCopied] = useState('')
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(text), () => setCopied(''))
  return <button type="button" onClick={copy}>{copied === text ? 'Copied' : 'Copy'}</button>
}

interface Figures { points: number; calls: number }

/** Sends a query once more to read its cost. It sends no subscription, because a live stream needs no calls to the venue. */
function Cost({ query, variables }: { query: string; variables: string }) {
  const [figures, setFigures] = useState<Figures>()
  const live = /\bsubscription /.test(query)
  useEffect(() => {
    if (live) return
    const stop = new AbortController()
    const headers = { 'Content-Type': 'application/json', 'X-Oddsgraph-Cost': '1', 'X-Oddsgraph-Explain': '1' }
    fetch(endpoint, { method: 'POST', headers, body: `{"query":${JSON.stringify(query)},"variables":${variables}}`, signal: stop.signal })
      .then(response => response.json())
      .then(({ extensions }) => setFigures({ points: extensions.cost.points, calls: extensions.explain.upstreamCalls }))
      .catch(() => {}) // without figures, the dialog stays as it is
    return () => stop.abort()
  }, [live, query, variables])
  if (live) return <p className="cost">A subscription over graphql-transport-ws: a live stream costs no calls to the venue.</p>
  return <p className="cost" data-points={figures?.points}>{figures ? `Cost: ${figures.points} points. Calls to the venue just now: ${figures.calls}.` : 'Reading the cost…'}</p>
}
