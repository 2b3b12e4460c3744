import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { compose, gatewayOver } from './gateway.js'
import { serveNotes } from './notes.js'

const oddsgraph = process.env.ODDSGRAPH_URL ?? 'http://127.0.0.1:8080/graphql'
const address = '0x1111111111111111111111111111111111111111'
const credentials = Buffer.from(JSON.stringify({ apiKey: 'demo-3', secret: 'demo', passphrase: 'demo' })).toString('base64')

const notes = new Map()
const server = await serveNotes(notes)
after(() => server.close())
const supergraph = await compose({ oddsgraph, notes: `http://127.0.0.1:${server.address().port}` })

/** Counts the gateway's requests to each subgraph. */
const requests = { oddsgraph: 0, notes: 0 }
const gateway = gatewayOver(supergraph, {
  plugins: () => [{ onFetch: ({ url }) => void requests[url === oddsgraph ? 'oddsgraph' : 'notes']++ }],
})
after(() => gateway.dispose())

async function ask(query, headers = {}) {
  Object.assign(requests, { oddsgraph: 0, notes: 0 })
  const response = await gateway.fetch('http://gateway/graphql', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  })
  return response.json()
}

test('the supergraph has the fields of both', () => {
  assert.match(supergraph, /type Market[^{]*@join__type\(graph: NOTES, key: "id"\)[^{]*\{/)
  assert.match(supergraph, /@join__type\(graph: ODDSGRAPH, key: "id"\)/)
  assert.match(supergraph, /note: String @join__field\(graph: NOTES\)/)
})

test('a query over both: fields of the notes on markets of oddsgraph', async () => {
  const first = await ask('{ searchMarkets(first: 20) { nodes { id } } }')
  const ids = first.data.searchMarkets.nodes.map(({ id }) => id)
  ids.forEach((id, i) => notes.set(id, `note ${i}`))
  const { data, errors } = await ask('{ searchMarkets(first: 20) { nodes { id question note tokens { id price { id price } } } } }')
  assert.equal(errors, undefined)
  assert.equal(data.searchMarkets.nodes.length, 20)
  for (const [i, market] of data.searchMarkets.nodes.entries()) {
    assert.deepEqual([market.id, market.note], [ids[i], `note ${i}`])
    assert.equal(typeof market.question, 'string')
    assert.match(market.tokens[0].price.price, /^[01](\.\d+)?$/)
  }
  assert.deepEqual(requests, { oddsgraph: 1, notes: 1 })
})

test('entities of oddsgraph for ids of the notes come in one request', async () => {
  const { data, errors } = await ask('{ notedMarkets { id note question status } }')
  assert.equal(errors, undefined)
  assert.equal(data.notedMarkets.length, notes.size)
  for (const market of data.notedMarkets) {
    assert.equal(market.note, notes.get(market.id))
    assert.equal(typeof market.question, 'string')
    assert.equal(typeof market.status, 'string')
  }
  assert.deepEqual(requests, { oddsgraph: 1, notes: 1 })
})

test('an id that oddsgraph does not know costs its own entity alone', async () => {
  notes.set('nonsense', 'of nothing')
  const { data, errors } = await ask('{ notedMarkets { id note question } }')
  notes.delete('nonsense')
  const unknown = data.notedMarkets.filter(({ question }) => question === null)
  assert.deepEqual(unknown.map(({ id, note }) => [id, note]), [['nonsense', 'of nothing']])
  assert.equal(errors.length, 1)
  assert.match(errors[0].message, /the id in a representation of Market is not a global id of the type Market/)
})

test('the gateway forwards credentials', async () => {
  const query = `{ user(address: "${address}") { positions(first: 5) { nodes { market { note question } } } } }`
  const anonymous = await ask(query)
  assert.equal(anonymous.errors[0].extensions.code, 'UNAUTHENTICATED')
  const { data, errors } = await ask(query, { 'X-Venue-Credentials': credentials })
  assert.equal(errors, undefined)
  assert.ok(data.user.positions.nodes.length > 0)
  assert.equal(typeof data.user.positions.nodes[0].market.question, 'string')
})
