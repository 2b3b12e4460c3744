package auth

import (
	"context"
	"log/slog"
	"time"

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

// errExpired is the cause of the end of a session whose token has expired.
var errExpired = market.Errorf(market.CodeUnauthenticated, "the token has expired; send a new one")

// Session returns the same account for the holder of one token: its Context also ends after lifetime, and when key ends, with the
// cause of that.
func (a *Account) Session(lifetime time.Duration, key context.Context) *Account {
	s := *a
	var end context.CancelCauseFunc
	s.ctx, end = context.WithCancelCause(a.ctx)
	expiry := time.AfterFunc(lifetime, func() { end(errExpired) })
	withdrawn := context.AfterFunc(key, func() { end(context.Cause(key)) })
	context.AfterFunc(s.ctx, func() {
		expiry.Stop()
		withdrawn()
	})
	return &s
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
