package auth

import (
	"context"
	"log/slog"
	"time"

	"oddsgraph/internal/market"
)

// Account is an account at the venue. A bearer token gives a client access to the account. An Account is immutable and safe for
// concurrent use.
type Account struct {
	// Name identifies the account in logs. It may be empty.
	Name    string
	Address market.Address
	// Credentials are the venue's credentials for Address. They may contain Address.
	Credentials *market.Credentials

	revoked context.Context
	revoke  context.CancelCauseFunc
	// withdrawn is a context that ends when the issuer withdraws the key of the session's token. The session ends at expiry. Both
	// fields are zero in an account that is not a session.
	withdrawn context.Context
	expiry    time.Time
}

var errRevoked = market.Errorf(market.CodeUnauthenticated, "the account of this request was revoked")

func newAccount(e entry) *Account {
	a := &Account{Name: e.name, Address: e.address, Credentials: e.credentials}
	a.revoked, a.revoke = context.WithCancelCause(context.Background())
	return a
}

// renamed returns a copy of the account with another name. Revoking the account or the copy revokes both.
func (a *Account) renamed(name string) *Account {
	b := *a
	b.Name = name
	return &b
}

var errExpired = market.Errorf(market.CodeUnauthenticated, "the token has expired; send a new one")

// Session returns a copy of the account for the client that sent a token. The session ends when lifetime has passed, when the
// account is revoked, or when the context withdrawn ends. The caller does not have to release the session.
func (a *Account) Session(lifetime time.Duration, withdrawn context.Context) *Account {
	s := *a
	s.withdrawn, s.expiry = withdrawn, time.Now().Add(lifetime)
	return &s
}

// Err returns nil while the account or session is valid. Otherwise it returns a market.Error with CodeUnauthenticated. An account
// ends when it is removed from the accounts file, or when its token, subject, address or credentials change in the file. A session
// also ends when its token expires, or when the issuer withdraws the key of the token.
func (a *Account) Err() error {
	switch {
	case a.revoked.Err() != nil:
		return context.Cause(a.revoked)
	case a.withdrawn != nil && a.withdrawn.Err() != nil:
		return context.Cause(a.withdrawn)
	case !a.expiry.IsZero() && !time.Now().Before(a.expiry):
		return errExpired
	}
	return nil
}

// Limit returns a context that ends when ctx ends or when the account is no longer valid. In the second case, the cause of the
// returned context is the error of Err. The returned context holds resources until it ends, so ctx must end at some time.
func (a *Account) Limit(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(a.Err()) }
	release := []func() bool{context.AfterFunc(a.revoked, end)}
	if a.withdrawn != nil {
		expired := time.AfterFunc(time.Until(a.expiry), func() { cancel(errExpired) })
		release = append(release, context.AfterFunc(a.withdrawn, end), expired.Stop)
	}
	context.AfterFunc(ctx, func() {
		for _, f := range release {
			f()
		}
	})
	return ctx
}

// LogValue returns the name and the address.
func (a *Account) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", a.Name), slog.String("address", string(a.Address)))
}
