// The parts of the kit that need no GraphQL client.
export { possibleTypes, embeddedTypes, connections } from './schema.js'
export { applyDelta, type Book, type BookUpdate, type Level } from './applyDelta.js'
export {
  applyOrders, applyPortfolio, applyTrades,
  type Identified, type OrdersEvent, type PortfolioEvent, type Timed, type TradesEvent, type UpdateReason,
} from './lists.js'
export { compareDecimals, decimal, formatDecimal, isDecimal, type Decimal } from './decimal.js'
export { ageMs, serverDate, type Received, type ServerDate } from './freshness.js'
export { credentialsHeader } from './credentials.js'
export { documentIds, withoutPersistedText, type Manifest } from './persisted.js'
export { socketOptions, watchSocket, type SocketState, type SocketStatus, type SocketWatch } from './socket.js'
export { codeOf, errorCodes, isRetryable, messagesOf, retryDelay, type ErrorCode, type GraphError } from './errors.js'
