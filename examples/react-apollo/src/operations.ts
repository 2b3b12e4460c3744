// The operations of the app with their types. A larger app generates the types; see docs/client-kit.md.
import { gql, type TypedDocumentNode } from '@apollo/client'
import type { BookUpdate, Decimal, UpdateReason } from '@oddsgraph/kit'

export interface Price { id: string; price: Decimal; freshness: { stale: boolean } }
export interface Market { id: string; question: string; tokens: { id: string; tokenId: string; outcome: string; price: Price | null }[] }
export interface Row { id: string; outcome: string; size: Decimal; market: { id: string; question: string } | null; valuation: { id: string; value: Decimal } | null }

export const search: TypedDocumentNode<{ searchMarkets: { nodes: Market[] } | null }, { text: string }> = gql`
  query Search($text: String!) {
    searchMarkets(query: $text, filter: { status: [OPEN] }, first: 10) {
      nodes { id question tokens { id tokenId outcome price { id price freshness { stale } } } }
    }
  }
`

// The event selects the token with its price. So a price that the query could not read appears with the next event.
export const prices: TypedDocumentNode<{ priceChanged: { reason: UpdateReason; token: { id: string; price: Price | null } } }, { tokenIds: string[] }> = gql`
  subscription Prices($tokenIds: [String!]!) {
    priceChanged(tokenIds: $tokenIds) { reason token { id price { id price freshness { stale } } } }
  }
`

export const book: TypedDocumentNode<{ orderbookChanged: BookUpdate }, { tokenId: string }> = gql`
  subscription Book($tokenId: String!) {
    orderbookChanged(tokenId: $tokenId, depth: 5, deltas: true) {
      kind sequence previousSequence bids { price size } asks { price size }
    }
  }
`

// The query and the subscription select the same fields of a position, so that a new row is complete.
const row = gql`
  fragment Row on Position { id outcome size market { id question } valuation { id value } }
`

interface Positions { nodes: Row[]; totalCount: number; pageInfo: { hasNextPage: boolean; endCursor: string | null } }

export const portfolio: TypedDocumentNode<{ user: { id: string; positions: Positions | null; portfolio: { id: string; positionsValue: Decimal | null } | null } | null }, { address: string; after?: string }> = gql`
  query Portfolio($address: Address!, $after: String) {
    user(address: $address) {
      id
      portfolio { id positionsValue }
      positions(first: 10, after: $after, sort: VALUE) { nodes { ...Row } totalCount pageInfo { hasNextPage endCursor } }
    }
  }
  ${row}
`

interface PortfolioEvent { reason: UpdateReason; changed: Row[]; closedPositionIds: string[]; summary: { id: string; positionsValue: Decimal | null } }

export const portfolioChanged: TypedDocumentNode<{ portfolioChanged: PortfolioEvent }, { address: string }> = gql`
  subscription PortfolioChanged($address: Address!) {
    portfolioChanged(address: $address) { reason changed { ...Row } closedPositionIds summary { id positionsValue } }
  }
  ${row}
`
