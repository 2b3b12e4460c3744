// Code as in a Relay app. relay-compiler checks it against the schema and generates its artifacts.
import { graphql } from 'relay-runtime'

/** A list of positions that is read page by page. `User` is a `Node`, so further pages need no query of their own. */
export const positions = () => graphql`
  fragment Positions_user on User
  @argumentDefinitions(first: { type: "Int", defaultValue: 2 }, after: { type: "String" })
  @refetchable(queryName: "PositionsPageQuery") {
    positions(first: $first, after: $after) @connection(key: "Positions_positions") {
      edges {
        node {
          id
          outcome
          size
          valuation {
            value
          }
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`

export const query = () => graphql`
  query PositionsQuery($address: Address!) {
    user(address: $address) {
      id
      ...Positions_user
    }
  }
`

export const priceChanged = () => graphql`
  subscription PositionsPriceChangedSubscription($tokenIds: [String!]!) {
    priceChanged(tokenIds: $tokenIds) {
      token {
        id
        price {
          id
          price
        }
      }
    }
  }
`
