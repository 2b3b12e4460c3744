// npm start: a gateway on PORT (4000) over oddsgraph (oddsgraph serve --federation) and notes on three markets. PORT=0 takes a free port.
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
const notes = await serveNotes(new Map(data.searchMarkets.nodes.map(({ id }, i) => [id, `note ${i + 1}`])))
const gateway = gatewayOver(await compose({ oddsgraph, notes: `http://127.0.0.1:${notes.address().port}` }))
const server = createServer(gateway).listen(process.env.PORT ?? 4000, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/graphql`))
