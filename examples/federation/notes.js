// A small subgraph: notes on markets, by the global ids of the markets.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { buildASTSchema, graphql, parse } from 'graphql'

const sdl = readFileSync(new URL('notes.graphql', import.meta.url), 'utf8')
const federation = `
  extend type Query { _service: _Service! _entities(representations: [_Any!]!): [_Entity]! }
  type _Service { sdl: String! }
  scalar _Any
  union _Entity = Market`
const schema = buildASTSchema(parse(sdl + federation), { assumeValidSDL: true })

/** Serves the notes, a Map from ids of markets to texts, and returns the server. */
export async function serveNotes(notes, port = 0) {
  const market = id => ({ __typename: 'Market', id, note: notes.get(id) })
  const rootValue = {
    notedMarkets: () => [...notes.keys()].map(market),
    _service: { sdl },
    _entities: ({ representations }) => representations.map(({ id }) => market(id)),
  }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    const { query, variables, operationName } = JSON.parse(body)
    const result = await graphql({ schema, source: query, rootValue, variableValues: variables, operationName })
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(result))
  })
  await new Promise(listening => server.listen(port, '127.0.0.1', listening))
  return server
}
