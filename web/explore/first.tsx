// Runs the first example once, so that a new visitor sees a response.
import { useEffect, useRef } from 'react'
import { useEditorContext, useExecutionContext } from '@graphiql/react'

/** Runs the query as soon as the editors contain it. */
export function FirstAnswer({ query }: { query: string }) {
  const { queryEditor, variableEditor, responseEditor } = useEditorContext({ nonNull: true })
  const { run } = useExecutionContext({ nonNull: true })
  const done = useRef(false)
  useEffect(() => {
    if (done.current || !variableEditor || !responseEditor || queryEditor?.getValue() !== query) return
    done.current = true
    run()
  }, [query, queryEditor, variableEditor, responseEditor, run])
  return null
}
