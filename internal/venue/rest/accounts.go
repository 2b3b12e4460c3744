package rest

import (
	"context"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// NoAccounts is embedded by the driver of a venue that serves no data of accounts. All methods return an UNSUPPORTED error with the
// reason, which is the text of NoAccounts.
type NoAccounts string

// Can returns nil for the endpoints of public data.
func (n NoAccounts) Can(e upstream.Endpoint) error {
	if e.User() {
		return market.Errorf(market.CodeUnsupported, "%s (%s)", string(n), e)
	}
	return nil
}

// CanReadCash implements venue.Driver.
func (n NoAccounts) CanReadCash() error { return n.Can(upstream.EndpointBalance) }

// Balance implements venue.Reader.
func (n NoAccounts) Balance(context.Context, upstream.Call, market.Address) (*market.Balance, error) {
	return nil, n.Can(upstream.EndpointBalance)
}

// Positions implements venue.Reader.
func (n NoAccounts) Positions(context.Context, upstream.Call, market.Address) ([]market.Position, error) {
	return nil, n.Can(upstream.EndpointPositions)
}

// Orders implements venue.Reader.
func (n NoAccounts) Orders(context.Context, upstream.Call, market.Address) ([]market.Order, error) {
	return nil, n.Can(upstream.EndpointOrders)
}

// Trades implements venue.Reader.
func (n NoAccounts) Trades(context.Context, upstream.Call, market.Address, queries.Trades) (*queries.TradePage, error) {
	return nil, n.Can(upstream.EndpointTrades)
}

// History implements venue.Reader.
func (n NoAccounts) History(context.Context, upstream.Call, market.Address, queries.History) (*queries.HistoryPage, error) {
	return nil, n.Can(upstream.EndpointHistory)
}
