package plain

import (
	"context"
	"errors"
)

// The resolvers, one type for each resolver interface that gqlgen generates.
type (
	Query     struct{}
	Users     struct{ Venue *Venue }
	Positions struct{}
	Tokens    struct{ Venue *Venue }
)

func (Query) User(_ context.Context, address string) (*User, error) { return &User{address}, nil }

func (Query) Market(ctx context.Context, marketID string) (*Market, error) {
	return requestOf(ctx).markets.Load(ctx, marketID)()
}

func (Query) TokenPrices(ctx context.Context, tokenIDs []string) ([]*TokenPrice, error) {
	prices, errs := requestOf(ctx).prices.LoadMany(ctx, tokenIDs)()
	return prices, errors.Join(errs...)
}

func (u Users) Positions(ctx context.Context, user *User, first *int) (*PositionConnection, error) {
	positions, err := u.Venue.positions(ctx, user.Address)
	if err != nil {
		return nil, err
	}
	positions.Nodes = positions.Nodes[:max(0, min(*first, len(positions.Nodes)))]
	return positions, nil
}

func (Positions) Market(ctx context.Context, p *Position) (*Market, error) {
	return requestOf(ctx).markets.Load(ctx, p.MarketID)()
}

func (Positions) Token(_ context.Context, p *Position) (*Token, error) {
	return &Token{p.TokenID, p.Outcome}, nil
}

func (Tokens) Price(ctx context.Context, t *Token) (*TokenPrice, error) {
	return requestOf(ctx).prices.Load(ctx, t.TokenID)()
}

func (t Tokens) Orderbook(ctx context.Context, token *Token, depth *int) (*Orderbook, error) {
	return t.Venue.orderbook(ctx, token.TokenID, *depth) // the schema has a default
}
