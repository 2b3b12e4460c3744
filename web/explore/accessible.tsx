// Adds labels for screen readers to GraphiQL's editors and to the fields of the explorer. GraphiQL itself has no such labels.
import { useEffect, useRef, type ComponentType } from 'react'
import { useEditorContext, type GraphiQLPlugin } from '@graphiql/react'

/** Names the editors and the buttons that close tabs, lets the keyboard scroll and leave the editors, and wraps long lines. */
export function NamedEditors() {
  const { queryEditor, variableEditor, headerEditor, responseEditor, tabs } = useEditorContext({ nonNull: true })
  useEffect(() => {
    const named = { Query: queryEditor, Variables: variableEditor, Headers: headerEditor, Response: responseEditor }
    for (const [name, editor] of Object.entries(named)) {
      editor?.setOption('screenReaderLabel', name)
      editor?.setOption('lineWrapping', true)
      editor?.addKeyMap({ Tab: false, 'Shift-Tab': false }) // without this, the key Tab would indent and not leave the editor
      editor?.getScrollerElement().setAttribute('tabindex', '0')
    }
  }, [queryEditor, variableEditor, headerEditor, responseEditor])
  useEffect(() => {
    for (const tab of document.querySelectorAll('.graphiql-tab')) {
      const close = tab.querySelector('.graphiql-tab-close')
      if (close) close.ariaLabel = `Close ${tab.querySelector('.graphiql-tab-button')?.textContent}`
    }
  }, [tabs])
  return null
}

/** Returns the plugin with a label for each unnamed field: the text beside the field. */
export function named(plugin: GraphiQLPlugin): GraphiQLPlugin {
  return { ...plugin, content: () => <Named content={plugin.content} /> }
}

function Named({ content: Content }: { content: ComponentType }) {
  const root = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const name = () => {
      for (const field of root.current!.querySelectorAll('input, select')) {
        if (!field.ariaLabel) field.ariaLabel = field.parentElement?.textContent || 'Name'
      }
    }
    const observer = new MutationObserver(name)
    observer.observe(root.current!, { childList: true, subtree: true })
    name()
    return () => observer.disconnect()
  }, [])
  return (
    <div ref={root}>
      <Content />
    </div>
  )
}
