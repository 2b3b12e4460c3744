package rest

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
)

// The ways in which a Client sends credentials to the venue. The credentials are a JSON object.
const (
	// CredentialsQuery sends the JSON object in the query parameter credentials.
	CredentialsQuery = "query"
	// CredentialsHeader sends the JSON object, in base64, in the header X-Api-Credentials.
	CredentialsHeader = "header"
	// CredentialsNone sends no credentials, because the venue identifies this service in another way.
	CredentialsNone = "none"
)

// The defaults of Config.
const (
	DefaultTimeout   = 10 * time.Second
	DefaultMaxBody   = 8 << 20
	DefaultRetries   = 2
	DefaultUserAgent = "oddsgraph"
)

// Config says where a host of a venue is and how to call the host. The zero value of a field means its default. BaseURL and Paths
// have no default.
type Config struct {
	// BaseURL is an http or https URL without query and user info. It may have a path prefix.
	BaseURL string
	// Paths are the URL paths of the endpoints. Endpoints with the same path share a circuit breaker. An endpoint without a path must
	// not be called.
	Paths Paths
	// CredentialsMode is CredentialsQuery (default), CredentialsHeader or CredentialsNone.
	CredentialsMode string
	// NoCredentials makes every call with credentials fail before it is sent, even if no credentials would be sent.
	NoCredentials bool
	// Timeout bounds one HTTP call from dialling to the last byte. A call also ends when its context ends.
	Timeout time.Duration
	// MaxBody is the greatest size in bytes of a decompressed response.
	MaxBody int64
	// Retries is the greatest number of retries of a call with a transient failure. A negative number means no retries.
	Retries   int
	UserAgent string
	// Transport replaces the default transport, which uses no proxy and bounds connections and the size of headers.
	Transport http.RoundTripper
	Clock     market.Clock
	Observer  Observer
	Log       *slog.Logger
	// Rand returns numbers in [0,1) for jitter. It is called concurrently. The default is the generator of math/rand/v2.
	Rand func() float64
}

// Paths are URL paths by endpoint.
type Paths [upstream.Endpoints]string

// Observer receives events for metrics. Its methods are called concurrently and must not block.
type Observer interface {
	// Call reports one HTTP call. If the venue failed or did not respond, failure is the reason. It is nil for every other call, also
	// for a call that was cancelled or refused.
	Call(call upstream.HTTPCall, failure error)
	// Drift reports a difference between a response and its documented form. The parameter difference has only a bounded number of
	// different values.
	Drift(endpoint, difference string)
}

// Client calls one host of a venue. It is safe for concurrent use. The only goroutines that outlive a call belong to idle
// connections. Close ends these goroutines.
type Client struct {
	// cfg is the configuration with the defaults filled in.
	cfg  Config
	base url.URL

	*backoffs
	// endpoints contains the breaker of each endpoint. Endpoints with the same path share one. An endpoint without a path has none.
	endpoints [upstream.Endpoints]*breaker
	breakers  []*breaker
}

// New returns a client of the host that cfg describes. It makes no call.
func New(cfg Config) (*Client, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	cfg.CredentialsMode = cmp.Or(cfg.CredentialsMode, CredentialsQuery)
	cfg.Timeout, cfg.MaxBody = cmp.Or(cfg.Timeout, DefaultTimeout), cmp.Or(cfg.MaxBody, DefaultMaxBody)
	cfg.Retries, cfg.UserAgent = cmp.Or(cfg.Retries, DefaultRetries), cmp.Or(cfg.UserAgent, DefaultUserAgent)
	switch cfg.CredentialsMode {
	case CredentialsQuery, CredentialsHeader, CredentialsNone:
	default:
		return nil, fmt.Errorf("venue: the credentials mode is %q, want query, header or none", cfg.CredentialsMode)
	}
	if cfg.Timeout < 0 || cfg.MaxBody < 0 {
		return nil, errors.New("venue: the timeout and the maximum size of a body must not be negative")
	}
	if cfg.Transport == nil {
		cfg.Transport = NewTransport()
	}
	cfg.Clock = cmp.Or[market.Clock](cfg.Clock, market.SystemClock{})
	cfg.Observer = cmp.Or[Observer](cfg.Observer, noObserver{})
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	c := &Client{cfg: cfg, base: base}
	c.backoffs = newBackoffs(cfg.Clock, cfg.Rand)
	c.initEndpoints()
	return c, nil
}

// Now returns the time of the configured clock.
func (c *Client) Now() time.Time { return c.cfg.Clock.Now() }

// Log returns the configured logger.
func (c *Client) Log() *slog.Logger { return c.cfg.Log }

// URLBytes returns the length in bytes of the URL of an endpoint, without a query.
func (c *Client) URLBytes(e upstream.Endpoint) int {
	return len(c.base.Scheme) + len("://") + len(c.base.Host) + len(c.base.Path) + len(c.cfg.Paths[e])
}

func (c *Client) initEndpoints() {
	byPath := make(map[string]*breaker)
	for e, path := range c.cfg.Paths {
		if path == "" {
			continue
		}
		b := byPath[path]
		if b == nil {
			b = &breaker{endpoint: upstream.Endpoint(e).String(), clock: c.cfg.Clock, rand: c.cfg.Rand, onChange: c.circuitChanged}
			byPath[path] = b
			c.breakers = append(c.breakers, b)
		}
		c.endpoints[e] = b
	}
}

// circuitChanged logs a change of a circuit. The Observer learns of each failed call, so the lines are for debugging only.
func (c *Client) circuitChanged(s Circuit) {
	if s.State == CircuitClosed {
		c.cfg.Log.Debug("calls are made again", "endpoint", s.Endpoint)
		return
	}
	c.cfg.Log.Debug("calls are paused", "endpoint", s.Endpoint, "until", s.Until)
}

// parseBase parses and checks the base URL. Its errors do not contain the URL, because someone may have put a secret in the URL.
func parseBase(s string) (url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return url.URL{}, errors.New("venue: the base URL cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return url.URL{}, errors.New("venue: the base URL must be http or https")
	case u.Host == "" || u.Hostname() == "":
		return url.URL{}, errors.New("venue: the base URL has no host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return url.URL{}, errors.New("venue: the base URL must have no user info, query or fragment")
	}
	return url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}, nil
}

// Close closes idle connections. Calls in flight are not affected.
func (c *Client) Close() {
	if t, ok := c.cfg.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

type noObserver struct{}

func (noObserver) Call(upstream.HTTPCall, error) {}
func (noObserver) Drift(string, string)          {}
