// What GraphiQL opens with: the examples, and a subscription.
import examples from 'examples'
import livePrices from './live-prices.graphql'

/** The tokens of the example of a price board. */
const { variables } = examples.find(({ name }) => name === 'price-board')!

/** The example that reads an account, and so needs its credentials. */
const account = 'portfolio'

/** The credentials of the account in the example on the demo venue, which are no secret. */
export const demoHeaders = JSON.stringify(
  { 'X-Venue-Credentials': btoa(JSON.stringify({ apiKey: 'demo-50', secret: 'demo', passphrase: 'demo' })) },
  null,
  2,
)

/** The tabs of somebody who comes for the first time: those that need nothing first. */
export const tabs = [
  ...examples.filter(({ name }) => name === 'price-board'),
  { query: livePrices, variables },
  ...examples.filter(({ name }) => name !== 'price-board' && name !== account),
  ...examples.filter(({ name }) => name === account),
].map(({ query, variables }) => ({ query, variables }))
