// Queries over HTTP and subscriptions over one WebSocket. One normalised cache stores the results of both.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { OperationTypeNode } from 'graphql'
import { createClient } from 'graphql-ws'
import { possibleTypes, retryLink, typePolicies } from '@oddsgraph/kit/apollo'

/** A bearer token of the demo venue. An app gets the token of its user from its identity provider. */
const headers = { Authorization: 'Bearer demo-50' }
const url = new URL('/graphql', location.href)

const socket = createClient({
  url: url.href.replace(/^http/, 'ws'),
  connectionParams: headers,
  retryAttempts: Infinity,
  retryWait: retries => new Promise(resolve => setTimeout(resolve, Math.min(250 * 2 ** retries, 4000))),
  shouldRetry: event => (event as CloseEvent).code !== 4403, // refused credentials
})

export const client = new ApolloClient({
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(socket),
    ApolloLink.from([retryLink(), new HttpLink({ uri: url.href, headers })]),
  ),
  cache: new InMemoryCache({ possibleTypes, typePolicies }),
})
