// The audits of the GraphQL over HTTP specification, a case each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serverAudits } from 'graphql-http'
import { endpoint } from './server.js'

const audits = serverAudits({ url: endpoint })

for (const audit of audits) {
  test(`${audit.id} ${audit.name}`, async () => {
    const result = await audit.fn()
    assert.equal(result.status, 'ok', 'reason' in result ? result.reason : undefined)
  })
}

test('no audit is missing', () => {
  const count = (level: string) => audits.filter(audit => audit.name.startsWith(level)).length
  assert.deepEqual([count('MUST'), count('SHOULD'), count('MAY')], [13, 23, 25])
})
