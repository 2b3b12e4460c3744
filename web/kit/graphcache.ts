// What the normalised cache of urql has to know of the graph: cacheExchange({ keys, resolvers }).
import type { KeyingConfig, ResolverConfig } from '@urql/exchange-graphcache'
import { relayPagination } from '@urql/exchange-graphcache/extras'
import { connections, embeddedTypes } from './schema.js'

export const keys: KeyingConfig = {
  // What has no id belongs to the object that shows it.
  ...Object.fromEntries(embeddedTypes.map(type => [type, () => null])),
  // There is one of these, so that an event of streamStatusChanged updates what serviceStatus has shown.
  ServiceStatus: () => 'service',
  StreamStatus: () => 'stream',
}

/** One list for all pages of a connection. */
export const resolvers: ResolverConfig = Object.fromEntries(
  Object.entries(connections).map(([type, lists]) => [
    type, Object.fromEntries(Object.keys(lists).map(field => [field, relayPagination()])),
  ]),
)
