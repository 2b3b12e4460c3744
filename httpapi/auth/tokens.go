package auth

import (
	"context"

	"oddsgraph/internal/market"
)

// Tokens finds the accounts of bearer tokens: of those in the accounts file, and of those that an identity provider has signed.
type Tokens struct {
	File *Store
	// Signed returns the account of a token that is not in the file; nil where there are no others. Its error is a market.Error.
	Signed func(ctx context.Context, token string) (*Account, error)
}

// Lookup returns the account of a token. The error is a market.Error with CodeUnauthenticated for a token that is not good.
func (t Tokens) Lookup(ctx context.Context, token string) (*Account, error) {
	if a, ok := t.File.Lookup(token); ok {
		return a, nil
	}
	if t.Signed != nil {
		return t.Signed(ctx, token)
	}
	return nil, market.Errorf(market.CodeUnauthenticated, "the bearer token is not known")
}
