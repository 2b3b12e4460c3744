// A gateway over subgraphs. It composes their schemas and plans each query over them.
import { createGatewayRuntime } from '@graphql-hive/gateway-runtime'
import { assertCompositionSuccess, composeServices } from '@theguild/federation-composition'
import { parse } from 'graphql'

/** Returns the schema of the subgraph at a URL. */
async function schemaOf(url) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: '{ _service { sdl } }' }),
  })
  const { data, errors } = await response.json()
  if (!data) throw new Error(`${url}: ${errors[0].message}`)
  return data._service.sdl
}

/** Composes the subgraphs, an object of URLs by name, and returns the supergraph as text. */
export async function compose(subgraphs) {
  const services = Object.entries(subgraphs).map(async ([name, url]) => ({ name, url, typeDefs: parse(await schemaOf(url)) }))
  const result = composeServices(await Promise.all(services))
  assertCompositionSuccess(result)
  return result.supergraphSdl
}

/** Returns a gateway over a supergraph: a listener for node:http. It forwards the credentials of its clients. */
export const gatewayOver = (supergraph, options = {}) => createGatewayRuntime({
  supergraph,
  logging: false,
  propagateHeaders: {
    fromClientToSubgraphs: ({ request }) => ({
      authorization: request.headers.get('authorization'),
      'x-venue-credentials': request.headers.get('x-venue-credentials'),
    }),
  },
  ...options,
})
