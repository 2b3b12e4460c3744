// What the cache of Apollo Client has to know of the graph: new InMemoryCache({ possibleTypes, typePolicies }).
import type { FieldMergeFunction, FieldPolicy, Reference, TypePolicies } from '@apollo/client'
import { relayStylePagination } from '@apollo/client/utilities'
import { connections, embeddedTypes } from './schema.js'

export { possibleTypes } from './schema.js'

export const typePolicies: TypePolicies = {}
// What has no id belongs to the object that shows it. Of two queries that select different fields of it, both are kept.
for (const type of embeddedTypes) typePolicies[type] = { keyFields: false, merge: true }
// There is one of these, so that an event of streamStatusChanged updates what serviceStatus has shown.
for (const type of ['ServiceStatus', 'StreamStatus']) typePolicies[type] = { keyFields: [], merge: true }
for (const [type, lists] of Object.entries(connections)) {
  const fields = Object.fromEntries(Object.entries(lists).map(([field, keyArgs]) => [field, pages(keyArgs)]))
  typePolicies[type] = { ...typePolicies[type], fields }
}

/** One list for all pages, whether they are selected by edges or by nodes. A list that could not be read stays null. */
function pages(keyArgs: string[]): FieldPolicy {
  const byEdges = relayStylePagination(keyArgs.length > 0 && keyArgs)
  const merge = byEdges.merge as FieldMergeFunction
  return {
    ...byEdges,
    merge(existing, incoming, options) {
      if (!incoming) return existing ?? null
      const merged = merge(existing, incoming, options)
      if (!incoming.nodes) return merged
      const before: Reference[] = (options.args?.after && existing?.nodes) || []
      const known = new Set(before.map(node => node.__ref))
      const added = (incoming.nodes as Reference[]).filter(node => !node.__ref || !known.has(node.__ref))
      return { ...merged, nodes: [...before, ...added] }
    },
  }
}
