// Made from schema.graphqls by "make generate"; changes belong there.

/** The object types behind each interface. */
export const possibleTypes: Record<string, string[]> = {
  "Node": [
    "Event",
    "Market",
    "Order",
    "Position",
    "Token",
    "User"
  ],
  "Update": [
    "BalanceUpdate",
    "MarketUpdate",
    "OrderbookUpdate",
    "OrdersUpdate",
    "PortfolioUpdate",
    "PriceUpdate",
    "PricesUpdate",
    "QuestionUpdate",
    "TradesUpdate"
  ]
}

/** Object types without an id, which a cache keeps inside of the object that shows them. */
export const embeddedTypes: string[] = [
  "BalanceUpdate",
  "Candle",
  "Category",
  "EventConnection",
  "EventEdge",
  "FillEstimate",
  "Freshness",
  "HistoryConnection",
  "HistoryEdge",
  "MarketConnection",
  "MarketEdge",
  "MarketUpdate",
  "NotComparable",
  "OrderConnection",
  "OrderEdge",
  "Orderbook",
  "OrderbookLevel",
  "OrderbookUpdate",
  "OrdersUpdate",
  "PageInfo",
  "PortfolioUpdate",
  "PositionConnection",
  "PositionEdge",
  "PriceHistory",
  "PricePoint",
  "PriceUpdate",
  "PricesUpdate",
  "QuestionConnection",
  "QuestionEdge",
  "QuestionLeg",
  "QuestionLevel",
  "QuestionOrderbook",
  "QuestionQuote",
  "QuestionUpdate",
  "QuestionsStatus",
  "Resolution",
  "ServiceStatus",
  "ServiceVenue",
  "SharedLimit",
  "SharedStatus",
  "SharedStream",
  "TradeConnection",
  "TradeEdge",
  "TradesUpdate",
  "VenueStatus"
]

/** Fields that are read page by page, with the arguments that tell one list from another. */
export const connections: Record<string, Record<string, string[]>> = {
  "Event": {
    "markets": []
  },
  "Market": {
    "trades": []
  },
  "Query": {
    "questions": [
      "query"
    ],
    "searchEvents": [
      "query",
      "filter",
      "sort",
      "order",
      "venues"
    ],
    "searchMarkets": [
      "query",
      "filter",
      "sort",
      "order",
      "venues"
    ]
  },
  "Token": {
    "trades": []
  },
  "User": {
    "history": [
      "kinds",
      "from",
      "to"
    ],
    "orders": [
      "marketIds",
      "side"
    ],
    "positions": [
      "marketIds",
      "minSize",
      "redeemable",
      "sort"
    ],
    "trades": [
      "marketId",
      "from",
      "to"
    ]
  }
}

/** Every value of extensions.code. */
export const errorCodes = [
  "GRAPHQL_PARSE_FAILED",
  "GRAPHQL_VALIDATION_FAILED",
  "BAD_USER_INPUT",
  "UNAUTHENTICATED",
  "FORBIDDEN",
  "PERSISTED_QUERY_NOT_FOUND",
  "PERSISTED_QUERY_NOT_SUPPORTED",
  "RATE_LIMITED",
  "RESPONSE_TOO_LARGE",
  "UPSTREAM_UNAVAILABLE",
  "UPSTREAM_TIMEOUT",
  "UPSTREAM_BAD_RESPONSE",
  "UNSUPPORTED",
  "INTERNAL_SERVER_ERROR"
] as const
