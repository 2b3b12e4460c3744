// The operations of the app. relay-compiler checks them against the schema and writes artifacts. The app imports the artifacts, not
// this module.
import { graphql } from 'relay-runtime'

export const search = () => graphql`
  query operationsSearchQuery($text: String!) {
    searchMarkets(query: $text, filter: { status: [OPEN] }, first: 10) {
      nodes { id question tokens { id tokenId outcome price { id price freshness { stale } } } }
    }
  }
`

// The event selects the token with its price. So a price that the query could not read appears with the next event.
export const prices = () => graphql`
  subscription operationsPricesSubscription($tokenIds: [String!]!) {
    priceChanged(tokenIds: $tokenIds) { reason token { id price { id price freshness { stale } } } }
  }
`

export const book = () => graphql`
  subscription operationsBookSubscription($tokenId: String!) {
    orderbookChanged(tokenId: $tokenId, depth: 5, deltas: true) {
      kind sequence previousSequence bids { price size } asks { price size }
    }
  }
`

export const portfolio = () => graphql`
  query operationsPortfolioQuery($address: Address!) {
    user(address: $address) {
      id
      portfolio { id positionsValue }
      ...operations_positions
    }
  }
`

export const positions = () => graphql`
  fragment operations_positions on User
  @argumentDefinitions(first: { type: "Int", defaultValue: 10 }, after: { type: "String" })
  @refetchable(queryName: "operationsPositionsPageQuery") {
    positions(first: $first, after: $after, sort: VALUE) @connection(key: "operations_positions", filters: []) {
      edges { node { id outcome size market { id question } valuation { id value } } }
      totalCount
      pageInfo { hasNextPage endCursor }
    }
  }
`

export const portfolioChanged = () => graphql`
  subscription operationsPortfolioChangedSubscription($address: Address!) {
    portfolioChanged(address: $address) {
      reason
      changed { id outcome size market { id question } valuation { id value } }
      closedPositionIds
      summary { id positionsValue }
    }
  }
`
