// The code that sends an operation: as a link to GraphiQL, for the command line, and for two clients.

export interface Operation {
  query: string
  /** A JSON object. */
  variables: string
}

/** Returns the address of GraphiQL with the operation in it. */
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

/** The code for the command line. curl has no WebSocket here: a subscription is read as server-sent events. */
function curl({ query, variables }: Operation, endpoint: string): string {
  const body = JSON.stringify({ query, ...(isEmpty(variables) ? {} : { variables: JSON.parse(variables) }) })
  const accept = isSubscription(query) ? ` \\\n  -N -H 'Accept: text/event-stream'` : ''
  return `curl ${endpoint} \\\n  -H 'Content-Type: application/json'${accept} \\\n  -d ${quoted(body)}`
}

function urql({ query, variables }: Operation): string {
  const hook = isSubscription(query) ? 'useSubscription' : 'useQuery'
  return `import { gql, ${hook} } from 'urql'

const document = gql\`
  ${indent(query, '  ')}
\`

const [{ data, error }] = ${hook}({
  query: document,
  variables: ${indent(isEmpty(variables) ? '{}' : variables, '  ')},
})
`
}

function apollo({ query, variables }: Operation): string {
  const hook = isSubscription(query) ? 'useSubscription' : 'useQuery'
  return `import { gql } from '@apollo/client'
import { ${hook} } from '@apollo/client/react'

const document = gql\`
  ${indent(query, '  ')}
\`

const { data, error } = ${hook}(document, {
  variables: ${indent(isEmpty(variables) ? '{}' : variables, '  ')},
})
`
}

export const languages = ['curl', 'urql', 'Apollo'] as const

export type Language = (typeof languages)[number]

/** Returns the code that sends the operation. Variables that are no JSON throw a SyntaxError. */
export function snippet(language: Language, operation: Operation, endpoint: string): string {
  return language === 'curl' ? curl(operation, endpoint) : language === 'urql' ? urql(operation) : apollo(operation)
}
