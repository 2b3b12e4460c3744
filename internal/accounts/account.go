package accounts

import (
	"context"
	"log/slog"

	"oddsgraph/internal/market"
)

// Account is what a bearer token stands for. It is immutable.
type Account struct {
	// Name tells accounts apart in logs; it may be empty.
	Name    string
	Address market.Address
	// Credentials name Address too, as those that a caller sends may.
	Credentials *market.Credentials

	ctx    context.Context
	revoke context.CancelCauseFunc
}

// errRevoked is what the holder of a revoked account is told.
var errRevoked = market.Errorf(market.CodeUnauthenticated, "the account that this was asked for was revoked")

func newAccount(e entry) *Account {
	a := &Account{Name: e.name, Address: e.address, Credentials: e.credentials}
	a.ctx, a.revoke = context.WithCancelCause(context.Background())
	return a
}

// renamed returns the same account, which ends when a does, under another name.
func (a *Account) renamed(name string) *Account {
	b := *a
	b.Name = name
	return &b
}

// Context ends when the account is revoked: its token was removed, or stands for another address or other credentials
// now. The cause is a market.Error with CodeUnauthenticated.
func (a *Account) Context() context.Context { return a.ctx }

// Done is closed when the account is revoked; see Context.
func (a *Account) Done() <-chan struct{} { return a.ctx.Done() }

// LogValue returns the name and the address.
func (a *Account) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", a.Name), slog.String("address", string(a.Address)))
}
