package auth

import (
	"context"

	"oddsgraph/internal/market"
)

// Tokens finds the accounts of bearer tokens. A valid token is in the accounts file, or an identity provider has signed it.
type Tokens struct {
	File *Store
	// Signed returns the account of a token that is not in the file. The error is a market.Error, or the cause of ctx if ctx
	// has ended. If there is no identity provider, Signed is nil.
	Signed func(ctx context.Context, token string) (*Account, error)
}

// Lookup returns the account of a token. The error is a market.Error, or the cause of ctx if ctx has ended. If the token is
// invalid, market.CodeOf(err) is CodeUnauthenticated.
func (t Tokens) Lookup(ctx context.Context, token string) (*Account, error) {
	if a, ok := t.File.Lookup(token); ok {
		return a, nil
	}
	if t.Signed != nil {
		return t.Signed(ctx, token)
	}
	return nil, market.Errorf(market.CodeUnauthenticated, "the bearer token is not known")
}
