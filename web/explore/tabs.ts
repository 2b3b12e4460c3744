// What GraphiQL opens with: the examples, and a subscription.
import examples from 'examples'
import livePrices from './live-prices.graphql'

/** The tokens of the example of a price board. */
const { variables } = examples.find(({ name }) => name === 'price-board')!

/** The example that reads an account and therefore needs credentials. */
const account = 'portfolio'

/** The credentials of the account in the example on the demo venue, which are no secret. */
export const demoHeaders = JSON.stringify(
  { 'X-Venue-Credentials': btoa(JSON.stringify({ apiKey: 'demo-50', secret: 'demo', passphrase: 'demo' })) },
  null,
  2,
)

/** The tabs of a new visitor. The tab that needs credentials comes last. */
export const tabs = [
  ...examples.filter(({ name }) => name === 'price-board'),
  { query: livePrices, variables },
  ...examples.filter(({ name }) => name !== 'price-board' && name !== account),
  ...examples.filter(({ name }) => name === account),
].map(({ query, variables }) => ({ query, variables }))
