// Queries over HTTP and subscriptions over one WebSocket. One normalised cache stores the results of both.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { OperationTypeNode } from 'graphql'
import { createClient } from 'graphql-ws'
import { socketOptions, watchSocket } from '@oddsgraph/kit'
import { possibleTypes, retryLink, typePolicies } from '@oddsgraph/kit/apollo'

declare const TOKEN: string // see vite.config.ts

/** An app gets the token of its user from its identity provider. Without a token, it reads what everybody may read. */
const headers: Record<string, string> = TOKEN ? { Authorization: `Bearer ${TOKEN}` } : {}
const url = new URL('/graphql', location.href)

const socket = createClient({ url: url.href.replace(/^http/, 'ws'), connectionParams: headers, ...socketOptions })

/** Whether the page is connected to the service. */
export const connection = watchSocket(socket)

export const client = new ApolloClient({
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(socket),
    ApolloLink.from([retryLink(), new HttpLink({ uri: url.href, headers })]),
  ),
  cache: new InMemoryCache({ possibleTypes, typePolicies }),
})
