// Apollo Client with the kit's policies, for the checks of the kit.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { ApolloClient, ApolloLink, InMemoryCache } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { OperationTypeNode } from 'graphql'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { possibleTypes, typePolicies } from '@oddsgraph/kit/apollo'
import { reconnecting, socketEndpoint } from './server.js'

export const connectSocket = (t: TestContext) => {
  const socket = createClient({ url: socketEndpoint, webSocketImpl: WebSocket, ...reconnecting })
  t.after(() => socket.dispose())
  return socket
}

/** Returns a client that sends queries over http. The test fails if its cache complains on the console. */
export function connectApollo(t: TestContext, http: ApolloLink): ApolloClient {
  // Apollo warns on the console when its cache loses data.
  const complaints = (['warn', 'error'] as const).map(level => t.mock.method(console, level).mock)
  const link = ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION, new GraphQLWsLink(connectSocket(t)), http,
  )
  const client = new ApolloClient({ link, cache: new InMemoryCache({ possibleTypes, typePolicies }) })
  t.after(() => {
    client.stop()
    assert.deepEqual(complaints.flatMap(({ calls }) => calls.map(call => call.arguments)), [])
  })
  return client
}
