package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/auth"
	"oddsgraph/httpapi/content"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

const (
	// CredentialsHeader is the header with a client's credentials for the venue: a JSON object in base64. Only the venue knows the
	// meaning of the object's members.
	CredentialsHeader = "X-Venue-Credentials"
	// authorization is the header with a bearer token, which a client may send instead of credentials. The token identifies an
	// account that the service knows.
	authorization = "Authorization"
	maxBearer     = 8192 // maximum length of a bearer token in bytes
)

// Accounts finds the accounts of bearer tokens.
type Accounts interface {
	// Lookup returns the account of a token. The error is a market.Error, with CodeUnauthenticated for an invalid token.
	Lookup(ctx context.Context, token string) (*auth.Account, error)
}

// Refusals counts refused tokens and credentials by address and key.
type Refusals interface {
	// Check returns an error if the key, or too many other keys, were refused from the address.
	Check(client netip.Addr, key auth.Key) error
	// Refused counts a request whose key was refused.
	Refused(client netip.Addr, key auth.Key)
	// Accepted records that the venue has accepted credentials for an account. Account returns this account, or "".
	Accepted(key auth.Key, account market.Address)
	Account(key auth.Key) market.Address
}

// identities reads the identity of a client from headers or from the payload of connection_init, never from cookies or parameters.
type identities struct {
	accounts Accounts // nil if the service knows no bearer tokens
	refusals Refusals
	client   func(r *http.Request) netip.Addr
	// trusted reports whether a trusted proxy sent a request; nil means no proxy is trusted.
	trusted   func(r *http.Request) bool
	unchecked bool
	// public reports that the venue shows accounts to everybody, and so accepts all credentials.
	public bool
	parsed *lru.Cache[[sha256.Size]byte, *market.Credentials]
	// names caches the names of clients.
	names *lru.Cache[quota.Client, string]
}

const maxNames = 1000

func newIdentities(cfg Config) *identities {
	return &identities{
		accounts: cfg.Accounts, refusals: cfg.Refusals, client: cfg.Client, trusted: cfg.Trusted, unchecked: cfg.Unchecked, public: cfg.PublicAccounts,
		parsed: newLRU[[sha256.Size]byte, *market.Credentials](MaxCredentials), names: newLRU[quota.Client, string](maxNames),
	}
}

// identity identifies the client of a request or connection. The zero value is anonymous.
type identity struct {
	address     netip.Addr
	proxied     bool // true if a trusted proxy sent the request
	credentials *market.Credentials
	// key is the key of credentials that the client sent itself.
	key auth.Key
	// account is the account of the bearer token; nil for a client that sent no bearer token.
	account *auth.Account
}

// client is what request.Request.Client contains: the identity of the client and, for a WebSocket, header values for all operations of
// the connection.
type client struct {
	identity
	hints connectionHints
}

func withClient(ctx context.Context, c *client) context.Context {
	return request.With(ctx, func(r *request.Request) { r.Client = c })
}

var nobody client

func clientFrom(ctx context.Context) *client {
	if c, ok := request.From(ctx).Client.(*client); ok {
		return c
	}
	return &nobody
}

func identityFrom(ctx context.Context) identity { return clientFrom(ctx).identity }

// fromHeaders returns a request with the identity of its sender. The context of the request also ends when the sender's account
// becomes invalid. For invalid credentials the request has no identity, and the error is a market.Error, so that their sender is not
// served as an anonymous client.
func (i *identities) fromHeaders(plain *http.Request) (r *httpRequest, err error) {
	r = &httpRequest{Request: plain, Header: plain.Header, Accepted: content.Negotiate(plain.Header["Accept"])}
	r.ctx.Derive(plain.Context())
	r.ctx.Client = &r.client
	r.address = i.client(plain)
	if credentials, bearer := plain.Header[CredentialsHeader], plain.Header[authorization]; len(credentials)+len(bearer) > 0 {
		r.ctx.Context, r.identity, err = i.identify(r.ctx.Context, r.address, credentials, bearer)
	}
	r.proxied = i.trusted != nil && i.trusted(plain)
	if r.credentials != nil {
		r.withoutCredentials()
	}
	return r, err
}

// reading returns a context for reads by the client in ctx. If log is not nil, the reads are counted in it.
func (i *identities) reading(ctx context.Context, log *request.Log) context.Context {
	id := &clientFrom(ctx).identity
	return request.With(ctx, func(r *request.Request) {
		r.Identify(i.caller(*id), id.credentials)
		if log != nil {
			r.Record(log)
		}
	})
}

// fromInit returns a context for reads by the sender of connection_init. Browsers cannot set headers of a WebSocket, so the payload
// may contain the credentials or the bearer token under the name of their header. If the payload contains neither, the context has
// the identity in ctx, which comes from the headers of the connection. fromInit returns an error if the payload and the headers
// identify different accounts. address is the address of the connection's client. The context ends when the account becomes invalid.
func (i *identities) fromInit(ctx context.Context, payload map[string]any, address netip.Addr) (context.Context, error) {
	var credentials, bearer []string
	for key, value := range payload {
		var values *[]string
		var name string
		switch {
		case strings.EqualFold(key, CredentialsHeader):
			values, name = &credentials, CredentialsHeader
		case strings.EqualFold(key, authorization):
			values, name = &bearer, authorization
		default:
			continue
		}
		text, ok := value.(string)
		if !ok {
			return nil, badInput("%s in connection_init is not a string", name)
		}
		*values = append(*values, text)
	}
	before := identityFrom(ctx)
	if len(credentials)+len(bearer) == 0 {
		if before.account != nil {
			ctx = before.account.Limit(ctx) // as fromHeaders does, whose context ends with the HTTP request, before the connection ends
		}
		return ctx, nil
	}
	ctx, now, err := i.identify(ctx, address, credentials, bearer)
	if err != nil {
		return nil, err
	}
	if before.credentials != nil && subtle.ConstantTimeCompare([]byte(before.credentials.Wire()), []byte(now.credentials.Wire())) == 0 {
		return nil, badInput("connection_init and the headers of the connection name different accounts")
	}
	return i.reading(withClient(ctx, &client{identity: now}), nil), nil
}

// identify returns the identity of the credentials or of the bearer token, of which at least one must not be empty. limited is ctx, or
// for a bearer token a context that also ends when the account becomes invalid. With an error, the identity is empty.
func (i *identities) identify(ctx context.Context, address netip.Addr, credentials, bearer []string) (limited context.Context, id identity, err error) {
	switch {
	case len(credentials) > 0 && len(bearer) > 0:
		return ctx, id, badInput("send either %s or %s, not both", CredentialsHeader, authorization)
	case len(credentials) > 1:
		return ctx, id, badInput("%s was sent %d times; send it once", CredentialsHeader, len(credentials))
	case len(bearer) > 1:
		return ctx, id, badInput("%s was sent %d times; send it once", authorization, len(bearer))
	}
	id.address = address
	if len(credentials) == 1 {
		if i.unchecked {
			return ctx, identity{}, market.Errorf(market.CodeUnauthenticated, "%s is not accepted here, since the venue checks no credentials; send a bearer token of an account in %s", CredentialsHeader, authorization)
		}
		if id.credentials, err = i.parse(credentials[0]); err == nil {
			id.key = auth.CredentialsKey(id.credentials)
			err = i.refusals.Check(address, id.key)
		}
	} else if id.account, err = i.lookup(ctx, address, bearer[0]); err == nil {
		id.credentials = id.account.Credentials
		if i.unchecked {
			id.credentials = id.credentials.Confined()
		}
		ctx = id.account.Limit(ctx)
	}
	if err != nil {
		return ctx, identity{}, err
	}
	return ctx, id, nil
}

// counted returns what the limits count the client for: the account of its bearer token, or the account for which the venue has
// accepted its credentials, or else its network. Credentials that the venue has not accepted make no difference, because a client
// can invent any number of them. When the venue accepts them, the result changes, so calling code that takes something for a client
// must keep the result to give it back.
func (i *identities) counted(id identity) quota.Client {
	if id.account != nil {
		return quota.Account(id.account.Address)
	}
	if id.credentials != nil {
		if account := i.refusals.Account(id.key); account != "" {
			return quota.Account(account)
		}
	}
	return quota.Anonymous(id.address)
}

// countedIn returns what the limits count the client in ctx for.
func (i *identities) countedIn(ctx context.Context) quota.Client { return i.counted(identityFrom(ctx)) }

// caller returns the name under which the rate limit counts the client's calls.
func (i *identities) caller(id identity) string {
	client := i.counted(id)
	name, ok := i.names.Get(client)
	if !ok {
		name = client.String()
		i.names.Add(client, name)
	}
	return name
}

// lookup returns the account of an Authorization header. It accepts a valid token even if the address has sent many invalid
// tokens, because all clients behind an unknown proxy have the same address.
func (i *identities) lookup(ctx context.Context, client netip.Addr, value string) (*auth.Account, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(value), " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return nil, market.Errorf(market.CodeUnauthenticated, "%s takes a bearer token and nothing else", authorization)
	case token == "" || len(token) > maxBearer || strings.ContainsAny(token, " ,"):
		return nil, badInput("%s must be Bearer and one token", authorization)
	case i.accounts == nil && i.unchecked:
		return nil, market.Errorf(market.CodeUnauthenticated, "no user data is served here: the venue checks no credentials, and no bearer tokens are known")
	case i.accounts == nil:
		return nil, market.Errorf(market.CodeUnauthenticated, "no bearer tokens are known here; send %s", CredentialsHeader)
	}
	account, err := i.accounts.Lookup(ctx, token)
	if err == nil || market.CodeOf(err) != market.CodeUnauthenticated {
		return account, err
	}
	key := auth.TokenKey(token)
	if err := i.refusals.Check(client, key); err != nil {
		return nil, err
	}
	i.refusals.Refused(client, key)
	return nil, err
}

func parseCredentials(value string) (*market.Credentials, error) {
	text := strings.TrimRight(strings.TrimSpace(value), "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	b, err := encoding.DecodeString(text)
	if err != nil {
		return nil, badInput("%s is not base64", CredentialsHeader)
	}
	return market.ParseCredentials(b)
}

// countRefusal counts a refusal if resp says that the venue has refused the credentials that the client in ctx sent. It ignores
// clients with a bearer token.
func (i *identities) countRefusal(ctx context.Context, resp *graphql.Response) {
	if id := identityFrom(ctx); id.credentials != nil && id.account == nil && unauthenticated(resp) {
		i.refusals.Refused(id.address, id.key)
	}
}

// unauthenticated reports whether a response has an error with CodeUnauthenticated, except for errors of a further venue, which gets no
// credentials of clients. resp may be nil.
func unauthenticated(resp *graphql.Response) bool {
	return resp != nil && slices.ContainsFunc(resp.Errors, func(err *gqlerror.Error) bool {
		return codeOf(err) == string(market.CodeUnauthenticated) && err.Extensions["venue"] == nil
	})
}

// countAcceptance records that the venue has accepted the credentials that the client in ctx sent, for an account. It ignores
// clients with a bearer token, and venues that check no credentials.
func (i *identities) countAcceptance(ctx context.Context, account market.Address) {
	if id := identityFrom(ctx); id.credentials != nil && id.account == nil && !i.public {
		i.refusals.Accepted(id.key, account)
	}
}
