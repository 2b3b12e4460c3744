// Configures the normalised cache of urql: cacheExchange({ keys, resolvers }).
import type { KeyingConfig, ResolverConfig } from '@urql/exchange-graphcache'
import { relayPagination } from '@urql/exchange-graphcache/extras'
import { connections, embeddedTypes } from './schema.js'

export const keys: KeyingConfig = {
  // An object without an id is stored inside its parent object.
  ...Object.fromEntries(embeddedTypes.map(type => [type, () => null])),
  // There is only one object of this type.
  ServiceStatus: () => 'service',
  // With its id, an event of streamStatusChanged updates the result of serviceStatus. Without it, the status is stored inside its venue.
  StreamStatus: ({ id }) => id as string | undefined ?? null,
}

/** Stores all pages of a connection as one list. */
export const resolvers: ResolverConfig = Object.fromEntries(
  Object.entries(connections).map(([type, lists]) => [
    type, Object.fromEntries(Object.keys(lists).map(field => [field, relayPagination()])),
  ]),
)
