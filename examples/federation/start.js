// npm start: a gateway on http://127.0.0.1:4000/graphql over oddsgraph (oddsgraph serve --federation) and notes on three markets.
import { createServer } from 'node:http'
import { compose, gatewayOver } from './gateway.js'
import { serveNotes } from './notes.js'

const oddsgraph = process.env.ODDSGRAPH_URL ?? 'http://127.0.0.1:8080/graphql'
const response = await fetch(oddsgraph, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ query: '{ searchMarkets(first: 3) { nodes { id } } }' }),
})
const { data } = await response.json()
await serveNotes(new Map(data.searchMarkets.nodes.map(({ id }, i) => [id, `note ${i + 1}`])), 4001)
const gateway = gatewayOver(await compose({ oddsgraph, notes: 'http://127.0.0.1:4001' }))
createServer(gateway).listen(4000, '127.0.0.1', () => console.log('http://127.0.0.1:4000/graphql'))
