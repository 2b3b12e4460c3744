package venue

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
	"oddsgraph/internal/market/reqctx"
)

// The ways in which the caller's credentials travel to the venue.
const (
	// CredentialsQuery sends the JSON object in the query parameter credentials.
	CredentialsQuery = "query"
	// CredentialsHeader sends the JSON object, base64, in the header X-Api-Credentials.
	CredentialsHeader = "header"
	// CredentialsNone sends nothing and asks for nothing: the venue knows its caller by other means.
	CredentialsNone = "none"
)

// The defaults of Config.
const (
	DefaultTimeout   = 10 * time.Second
	DefaultMaxBody   = 8 << 20
	DefaultMaxIDs    = 100
	DefaultMaxURL    = 2 << 10
	DefaultRetries   = 2
	DefaultUserAgent = "oddsgraph"
)

// Config says where the venue is and how it is asked. The zero value of a field means its default.
type Config struct {
	// BaseURL is http or https, with or without a path prefix, without query and user info.
	BaseURL string
	// CredentialsMode is CredentialsQuery (default), CredentialsHeader or CredentialsNone.
	CredentialsMode string
	// Timeout bounds one HTTP call from dialling to the last byte; the caller's own deadline holds as well.
	Timeout time.Duration
	// MaxBody is the greatest size in bytes of an answer after decompression.
	MaxBody int64
	// MaxIDs is the greatest number of ids in one list call; longer lists are split.
	MaxIDs int
	// MaxURL is the greatest length in bytes of the URL of a list call with more than one id. Where the venue refuses URLs
	// that are shorter, they become shorter still.
	MaxURL int
	// Names are the venue's names of the parameters of market-details; those that are not said are found out.
	Names DetailNames
	// Retries is the greatest number of further attempts of a call that failed in passing; a negative number is none.
	Retries   int
	UserAgent string
	// Transport replaces the client's own one, which uses no proxy and bounds connections and header size.
	Transport http.RoundTripper
	Clock     market.Clock
	Observer  Observer
	Log       *slog.Logger
	// Rand returns numbers from 0 to less than 1 for jitter; nil means those of math/rand. It is called concurrently.
	Rand func() float64
}

// Observer is told what the client does. Its methods are called concurrently and must not block.
type Observer interface {
	// Call reports one HTTP call. status is 0 when no answer came; outcome is as in reqctx.UpstreamCall.
	Call(endpoint string, keys, status int, outcome string, elapsed time.Duration)
	// Drift reports that an answer was not quite what the contract says; what is one of a bounded set of fixed texts.
	Drift(endpoint, what string)
}

// Client asks the venue. It is safe for concurrent use and starts no goroutine that outlives a call, apart from idle
// connections, which Close ends.
type Client struct {
	base      url.URL
	mode      string
	timeout   time.Duration
	maxBody   int64
	maxIDs    int
	maxURL    int
	retries   int
	userAgent string
	transport http.RoundTripper
	clock     market.Clock
	observer  Observer
	log       *slog.Logger
	// rand returns a random number in [0,1).
	rand func() float64

	backoffs *backoffs
	// lines are the ways to the endpoints; those of one path share a line. breakers are theirs, each once.
	lines    [len(paths)]*line
	breakers []*breaker

	// habits are what the venue turned out to do with a wallet's lists.
	habits [len(paths)]habit

	// lengths are the lengths of URLs that the venue takes, where they are shorter than maxURL.
	lengths [len(paths)]urlLength

	// What the venue turned out to know of the parameters that are not in its own description.
	marketIDs, marketTokens, spreadTokens capability
	// spreadsExist is what it turned out to know of the spreads endpoint as such.
	spreadsExist                      capability
	marketID, marketToken, marketSlug parameter
}

// New returns a client of the venue that cfg describes. It does not ask the venue anything.
func New(cfg Config) (*Client, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	c := &Client{
		base:      base,
		mode:      cmp.Or(cfg.CredentialsMode, CredentialsQuery),
		timeout:   cmp.Or(cfg.Timeout, DefaultTimeout),
		maxBody:   cmp.Or(cfg.MaxBody, DefaultMaxBody),
		maxIDs:    cmp.Or(cfg.MaxIDs, DefaultMaxIDs),
		maxURL:    cmp.Or(cfg.MaxURL, DefaultMaxURL),
		retries:   cmp.Or(cfg.Retries, DefaultRetries),
		userAgent: cmp.Or(cfg.UserAgent, DefaultUserAgent),
		transport: cfg.Transport,
		clock:     cfg.Clock,
		observer:  cfg.Observer,
		log:       cfg.Log,
		rand:      cfg.Rand,
	}
	switch c.mode {
	case CredentialsQuery, CredentialsHeader, CredentialsNone:
	default:
		return nil, fmt.Errorf("venue: the credentials mode is %q, want query, header or none", c.mode)
	}
	if c.timeout < 0 || c.maxBody < 0 || c.maxIDs < 0 || c.maxURL < 0 {
		return nil, errors.New("venue: timeout, greatest body, number of ids and length of URLs must be positive")
	}
	if c.transport == nil {
		c.transport = newTransport()
	}
	if c.clock == nil {
		c.clock = market.SystemClock{}
	}
	if c.observer == nil {
		c.observer = ignore{}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.rand == nil {
		c.rand = rand.Float64
	}
	c.name(cfg.Names)
	c.backoffs = newBackoffs(c.clock, func() float64 { return c.rand() })
	c.lay()
	return c, nil
}

// line is the way to one endpoint of the venue. It is nobody else's, so that calls that hang there hold up no others.
type line struct {
	breaker *breaker
	// slots bounds the calls under way.
	slots chan struct{}
}

// lay gives every path a line.
func (c *Client) lay() {
	laid := make(map[string]*line, len(paths))
	for e, path := range paths {
		l := laid[path]
		if l == nil {
			l = &line{
				breaker: &breaker{endpoint: reqctx.Endpoint(e).String(), clock: c.clock, rand: func() float64 { return c.rand() }, changed: c.circuitChanged},
				slots:   make(chan struct{}, maxInFlight),
			}
			laid[path] = l
			c.breakers = append(c.breakers, l.breaker)
		}
		c.lines[e] = l
	}
}

func (c *Client) circuitChanged(s Circuit) {
	if s.State == CircuitClosed {
		c.log.Info("the venue is back", "endpoint", s.Endpoint)
		return
	}
	c.log.Warn("the venue fails and is left alone", "endpoint", s.Endpoint, "until", s.Until)
}

// parseBase never quotes its input, which might hold a secret by mistake.
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

// Close closes idle connections; calls under way are not affected.
func (c *Client) Close() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// paths are those of the endpoints. The two list forms of market-details are endpoints of their own, since a venue may know
// only one.
var paths = [...]string{
	reqctx.EndpointPrices:         "/api/exchange/prices",
	reqctx.EndpointSpreads:        "/api/exchange/spreads",
	reqctx.EndpointBook:           "/api/exchange/orderbook",
	reqctx.EndpointPriceHistory:   "/api/exchange/price-history",
	reqctx.EndpointSearch:         "/api/exchange/market-search",
	reqctx.EndpointMarketsByID:    "/api/exchange/market-details",
	reqctx.EndpointMarketsByToken: "/api/exchange/market-details",
	reqctx.EndpointMarketBySlug:   "/api/exchange/market-details",
	reqctx.EndpointBalance:        "/api/user/balance",
	reqctx.EndpointPositions:      "/api/user/positions",
	reqctx.EndpointOrders:         "/api/user/orders",
	reqctx.EndpointTrades:         "/api/user/trades",
	reqctx.EndpointHistory:        "/api/user/history",
}

// Cost returns the number of HTTP calls that a batch of so many distinct keys takes at present, whose ids have so many bytes in a
// URL: it is higher while the venue is known not to know the list form. Extra pages of positions and orders, and the calls by
// which a refused list is taken apart, are not foreseen.
func (c *Client) Cost(endpoint reqctx.Endpoint, keys, bytes int) int {
	switch endpoint {
	case reqctx.EndpointPrices:
		return c.listCost(endpoint, nil, keys, bytes)
	case reqctx.EndpointSpreads:
		if !c.spreadsExist.lists(c.clock.Now()) {
			return max(keys, 0)
		}
		return c.listCost(endpoint, &c.spreadTokens, keys, bytes)
	case reqctx.EndpointMarketsByID:
		return c.listCost(endpoint, &c.marketIDs, keys, bytes)
	case reqctx.EndpointMarketsByToken:
		return c.listCost(endpoint, &c.marketTokens, keys, bytes)
	default:
		return max(keys, 0)
	}
}

func ceil(keys, size int) int { return (max(keys, 0) + size - 1) / size }

type ignore struct{}

func (ignore) Call(string, int, int, string, time.Duration) {}
func (ignore) Drift(string, string)                         {}
