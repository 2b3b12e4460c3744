// Makes the code that sends an operation: for the command line, for the browser, for urql and for Apollo. Also makes a link that
// opens the operation in GraphiQL.

export interface Operation {
  query: string
  /** A JSON object. */
  variables: string
  headers?: Record<string, string>
}

/** Returns the address of GraphiQL with the operation in its query string. */
export function explorePath({ query, variables }: Operation): string {
  const parameters = new URLSearchParams({ query })
  if (!isEmpty(variables)) parameters.set('variables', variables)
  return `/?${parameters}`
}

const isEmpty = (variables: string) => ['', '{}'].includes(variables.replace(/\s/g, ''))

const isSubscription = (query: string) => /^\s*(#.*\n\s*)*(subscription\b|fragment\b[\s\S]*?\nsubscription\b)/.test(query)

const indent = (text: string, by: string) => text.trim().replaceAll('\n', `\n${by}`)

/** Quotes a text for a POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Returns a text as it is written between backquotes in JavaScript. */
const escaped = (text: string) => text.replace(/[\\`]|\$\{/g, '\\$&')

/** Returns the JSON text of variables as JavaScript code. It throws a SyntaxError if the text is not JSON. */
function literal(variables: string, by: string): string {
  if (isEmpty(variables)) return '{}'
  JSON.parse(variables)
  return indent(variables, by)
}

/** The code for the command line. For a subscription, curl reads server-sent events in place of a WebSocket. */
function curl({ query, variables, headers = {} }: Operation, endpoint: string): string {
  const body = JSON.stringify({ query, ...(isEmpty(variables) ? {} : { variables: JSON.parse(variables) }) })
  const accept = isSubscription(query) ? ` \\\n  -N -H 'Accept: text/event-stream'` : ''
  const more = Object.entries(headers).map(([name, value]) => ` \\\n  -H ${quoted(`${name}: ${value}`)}`).join('')
  return `curl ${endpoint} \\\n  -H 'Content-Type: application/json'${accept}${more} \\\n  -d ${quoted(body)}`
}

function fetched({ query, variables, headers = {} }: Operation, endpoint: string): string {
  const all = { 'Content-Type': 'application/json', ...(isSubscription(query) ? { Accept: 'text/event-stream' } : {}), ...headers }
  const read = isSubscription(query)
    ? `for await (const events of response.body.pipeThrough(new TextDecoderStream())) console.log(events)`
    : `const { data, errors } = await response.json()`
  return `const response = await fetch('${endpoint}', {
  method: 'POST',
  headers: ${indent(JSON.stringify(all, null, 2), '  ')},
  body: JSON.stringify({
    query: \`
      ${indent(escaped(query), '      ')}
    \`,
    variables: ${literal(variables, '    ')},
  }),
})
${read}
`
}

function urql({ query, variables }: Operation): string {
  const hook = isSubscription(query) ? 'useSubscription' : 'useQuery'
  return `import { gql, ${hook} } from 'urql'

const document = gql\`
  ${indent(escaped(query), '  ')}
\`

const [{ data, error }] = ${hook}({
  query: document,
  variables: ${literal(variables, '  ')},
})
`
}

function apollo({ query, variables }: Operation): string {
  const hook = isSubscription(query) ? 'useSubscription' : 'useQuery'
  return `import { gql } from '@apollo/client'
import { ${hook} } from '@apollo/client/react'

const document = gql\`
  ${indent(escaped(query), '  ')}
\`

const { data, error } = ${hook}(document, {
  variables: ${literal(variables, '  ')},
})
`
}

const writers = { curl, fetch: fetched, urql, Apollo: apollo }

export type Language = keyof typeof writers

export const languages = Object.keys(writers) as Language[]

/**
 * Returns the code that sends the operation. It throws a SyntaxError if the variables are not JSON. The code for urql and Apollo
 * has no headers, because their clients are configured elsewhere.
 */
export const snippet = (language: Language, operation: Operation, endpoint: string): string => writers[language](operation, endpoint)
