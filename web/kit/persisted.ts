// Trusted documents: finds the id of a document in a manifest by the name of its operation.

/** A manifest of Apollo, or a map of ids to texts as Relay and GraphQL Code Generator write it. */
export type Manifest = Readonly<Record<string, string>> | { readonly operations: readonly { readonly id: string; readonly name: string }[] }

/**
 * Returns the ids of a manifest's documents by the names of their operations. It throws an error if two operations have the same
 * name, or if an operation has no name. The texts of the manifest must select __typename wherever the client's cache would add
 * __typename.
 */
export function documentIds(manifest: Manifest): ReadonlyMap<string, string> {
  const operations: readonly { readonly id: string; readonly name: string | undefined }[] = Array.isArray(manifest['operations'])
    ? manifest['operations']
    : Object.entries(manifest as Record<string, string>).map(([id, text]) => ({ id, name: nameOf(text) }))
  const ids = new Map<string, string>()
  for (const { id, name } of operations) {
    if (!name) throw new Error(`document ${id} of the manifest has no name`)
    if (ids.has(name)) throw new Error(`two documents of the manifest have the name ${name}`)
    ids.set(name, id)
  }
  return ids
}

/** Returns the name of a document's operation. It ignores all text in braces, in parentheses, in strings and in comments. */
function nameOf(text: string): string | undefined {
  let rest = text.replace(/"""[^]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*/g, '')
  for (let before = ''; before !== rest;) [before, rest] = [rest, rest.replace(/\{[^{}]*\}|\([^()]*\)/g, ' ')]
  return /\b(?:query|mutation|subscription)\s+(\w+)/.exec(rest)?.[1]
}

/** The extension of a request that names its document by an id. */
export const persistedQuery = (id: string) => ({ version: 1 as const, sha256Hash: id })

/**
 * Removes the text of a subscription whose document is named by an id. Pass it to createClient of graphql-ws as
 * jsonMessageReplacer.
 */
export function withoutPersistedText(key: string, value: unknown): unknown {
  const payload = value as { query?: unknown; extensions?: { persistedQuery?: unknown } | null } | null | undefined
  if (key !== 'payload' || !payload?.extensions?.persistedQuery) return value
  const { query: _, ...rest } = payload
  return rest
}
