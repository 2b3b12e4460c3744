// A menu of the toolbar that copies the operation as code.
import { useState } from 'react'
import { ToolbarMenu, useEditorContext } from '@graphiql/react'
import { languages, snippet, type Language } from '../design/snippets'
import { demoHeaders } from './tabs'

const endpoint = new URL('graphql', location.href).href

export function CopyAsCode() {
  const { queryEditor, variableEditor, headerEditor } = useEditorContext({ nonNull: true })
  const [message, setMessage] = useState({ text: '', count: 0 })
  const say = (text: string) => setMessage(({ count }) => ({ text, count: count + 1 }))
  const copy = async (language: Language) => {
    try {
      const operation = { query: queryEditor?.getValue() ?? '', variables: variableEditor?.getValue() ?? '', headers: copied(headerEditor?.getValue() ?? '') }
      await navigator.clipboard.writeText(snippet(language, operation, endpoint))
      say(`Copied as ${language}`)
    } catch (problem) {
      say(problem instanceof SyntaxError ? 'Not copied: the variables or headers are not valid JSON' : 'Not copied: the browser does not allow it')
    }
  }
  return (
    <>
      <ToolbarMenu label="Copy as code" button={<span className="copy-as-code" aria-hidden="true">{'</>'}</span>}>
        {languages.map(language => <ToolbarMenu.Item key={language} onSelect={() => void copy(language)}>{language}</ToolbarMenu.Item>)}
      </ToolbarMenu>
      {/* Each message is a new element, so that its animation starts again. */}
      <span role="status"><span className="copied" key={message.count}>{message.text}</span></span>
    </>
  )
}

/**
 * Returns the headers for the copied code. Because people share code, "..." replaces every value except the demo's public
 * credentials.
 */
function copied(headers: string): Record<string, string> {
  if (headers.trim() === '') return {}
  const shown = JSON.parse(demoHeaders) as Record<string, unknown>
  return Object.fromEntries(Object.entries(JSON.parse(headers) as object).map(([name, value]) => [name, shown[name] === value ? String(value) : '...']))
}
