// The tabs that GraphiQL opens for a new visitor: the examples and a subscription.
import examples from 'examples'
import livePrices from './live-prices.graphql'

/** The variables of the example price-board: the tokens of the subscription. */
const { variables } = examples.find(({ name }) => name === 'price-board')!

/** The example that reads an account and therefore needs credentials. */
const account = 'portfolio'

/** The header with the demo venue's credentials for the account of that example. They are public. */
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
