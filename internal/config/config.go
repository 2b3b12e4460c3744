// Package config parses the command line, environment and configuration file into one validated value.
//
// Every flag except --help has a variable, which can be set in the environment or in the file. Only ODDSGRAPH_CONFIG cannot be set
// in the file. For example, the variable of --venue-url is ODDSGRAPH_VENUE_URL. A flag overrides the environment, the environment
// overrides the file, and the file overrides the default. The struct tags of Config contain the names, defaults, limits and help
// texts. docs/configuration.md is generated from these tags.
package config

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"time"
)

// Command is one of the program's subcommands.
type Command string

// The subcommands. CommandServe is the default.
const (
	CommandServe       Command = "serve"
	CommandVenue       Command = "venue"
	CommandSchema      Command = "schema"
	CommandVersion     Command = "version"
	CommandLicenses    Command = "licenses"
	CommandHealthcheck Command = "healthcheck"
	CommandConfigCheck Command = "config check"
	CommandConfigShow  Command = "config show"
	CommandPropose     Command = "questions propose"
	CommandQuestions   Command = "questions check"
)

// usesSettings reports whether the command uses settings from the environment and the configuration file.
func (c Command) usesSettings() bool {
	return c != CommandSchema && c != CommandVersion && c != CommandLicenses
}

// ErrHelp is returned after --help was printed.
var ErrHelp = errors.New("help was printed")

// Config contains the settings of the program. It must not be changed after Parse. If fmt or slog prints a Config, the printed URLs
// have no user info and no query. But if fmt or slog prints a single field, the printed URLs are complete.
type Config struct {
	Command Command `kong:"-"`
	// Ask is the flag --ask of CommandConfigCheck, and Semantic the flag --semantic of CommandSchema.
	Ask, Semantic bool `kong:"-"`
	// Accept is the flag --accept of CommandQuestions, whose file replaces QuestionsFile.
	Accept string `kong:"-"`

	// More are the configurations of the further venues, those of --demo-driver first. They differ from this one only in Venue, StreamURL,
	// StreamTopics and Demo.
	More []*Config `kong:"-"`

	// origins maps the name of a flag to the place where its value was set. It contains only flags that were set.
	origins map[string]string

	File string `name:"config" placeholder:"FILE" check:"file" group:"Server" help:"File of these variables, one NAME=value on each line. The environment and flags override it. SIGHUP reads it again. Empty reads none."`

	Listen          string        `default:"127.0.0.1:8080" check:"listen" group:"Server" help:"Address that serves GraphQL, host:port. An empty host means every interface."`
	AdminListen     string        `default:"127.0.0.1:9091" check:"admin" group:"Server" help:"Private address that serves metrics, profiles and the administration of the cache, host:port. off disables it and all measurements."`
	RequestTimeout  time.Duration `default:"30s" min:"1ms" max:"10m" group:"Server" help:"Longest time for one GraphQL request."`
	MaxBody         Bytes         `default:"256KiB" min:"1KiB" max:"64MiB" group:"Server" help:"Maximum size of the body of a GraphQL request, and of a client's message on a WebSocket. A longer body is refused. A longer message closes the WebSocket."`
	MaxResponse     Bytes         `default:"8MiB" min:"1KiB" max:"256MiB" group:"Server" help:"Maximum size of a response and of an event of a subscription, including errors. A longer response or event becomes the error RESPONSE_TOO_LARGE."`
	MaxOperations   int           `default:"512" min:"1" max:"100000" group:"Server" help:"Number of places for GraphQL requests that execute or wait for the venue. At most half of them wait for the venue. The requests of one account or client address may take at most three times as many places as are still free, of all and of this half. Twice as many requests wait for a place for at most two seconds. All other requests are refused with status 503."`
	MaxConnections  int           `default:"3000" min:"16" max:"10000000" group:"Server" help:"TCP connections of all clients at once. Further connections are closed."`
	ShutdownTimeout time.Duration `default:"15s" min:"0s" max:"10m" group:"Server" help:"Longest wait for running requests when the program stops."`
	DrainDelay      time.Duration `default:"0s" min:"0s" max:"5m" group:"Server" help:"Time for which the program still accepts requests after it was told to stop, while /readyz says draining. Load balancers must notice within this time."`
	Introspection   bool          `default:"true" group:"Server" help:"Whether clients may query the schema by introspection."`
	Suggestions     bool          `default:"true" group:"Server" help:"Whether errors suggest fields, arguments and values with similar names."`
	Explain         string        `default:"auto" oneof:"auto,on,off" group:"Server" help:"Whether clients that send X-Oddsgraph-Explain: 1 get the history of their operation. auto allows it with the demo venue."`
	Origins         List          `placeholder:"URLS" check:"origins" group:"Server" help:"Origins of pages on other hosts that may use the service, separated by commas, such as https://app.example.com. * allows all. Empty allows only pages of the service's own host and, with the demo venue on a loopback address, of localhost, 127.0.0.1 and [::1] at any port."`
	CORSHeaders     List          `name:"cors-headers" placeholder:"NAMES" check:"headers" group:"Server" help:"Further request headers that pages of other origins may send, separated by commas, such as X-B3-TraceId. * allows all. The headers of Apollo's clients, GraphQL Hive, W3C Trace Context (with baggage) and Sentry are always allowed."`
	Hosts           List          `placeholder:"NAMES" check:"hosts" group:"Server" help:"Host names of the service, separated by commas, such as odds.example.com. Requests for other names are refused with status 403, except for localhost and IP addresses. * allows all names. If the list is empty, a service that listens on a loopback address still refuses all names except localhost and IP addresses. Any other service then refuses no name."`
	AccountsFile    string        `placeholder:"FILE" check:"file" group:"Server" help:"JSON file with the SHA-256 of bearer tokens and their accounts. Only its owner may write it, and other users may not read it. Changes take effect within a second. Empty accepts no bearer tokens."`
	QuestionsFile   string        `placeholder:"FILE" check:"file" group:"Server" help:"JSON file of questions that a person has found on several venues; see docs/questions.md. Changes take effect within a second. An invalid file keeps the earlier content in use. Empty has no questions."`
	TrustedProxies  List          `placeholder:"NETWORKS" check:"networks" group:"Server" help:"Addresses and networks of the proxies in front of the service, separated by commas. The service trusts their X-Forwarded-For and sampled traceparent. Empty trusts nobody."`

	JWT       JWT       `embed:"" prefix:"jwt-" group:"Tokens of an identity provider"`
	Client    Client    `embed:"" prefix:"client-" group:"What clients keep open"`
	Documents Documents `embed:"" prefix:"documents-" group:"Persisted documents"`
	Limit     Limit     `embed:"" prefix:"limit-" group:"Limits of an operation"`

	Log   Log   `embed:"" prefix:"log-" group:"Log"`
	Venue Venue `embed:"" prefix:"venue-" group:"Venue"`

	StreamURL string `placeholder:"URL" check:"stream" group:"Venue" help:"URL of the venue's WebSocket, ws:// or wss://. Empty means the stream of the driver or of the demo venue. If neither has one, there is no stream."`
	// StreamTopics is divided among connections of at most 200 topics.
	StreamTopics int `default:"2000" min:"1" max:"100000" group:"Venue" help:"Maximum number of prices, books, lists of trades and markets that the process follows on the venue's stream, at most 200 on each connection. Queries use at most half of this number, and so do lists of trades and markets of one client address beyond a quarter. Beyond it, prices and books are polled over REST, and subscriptions to other data are refused. Accounts do not count."`

	MoreVenues List `placeholder:"VENUES" check:"text" group:"Venue" help:"Further venues in the same graph, separated by commas, at most eight venues in all: the name of a driver, or the path of a file (with a slash or a dot) that is named after the venue, such as ./other.env, with the variables ODDSGRAPH_VENUE_* and ODDSGRAPH_STREAM_*. Their ids begin with the venue's name and a colon. They get no credentials of callers."`

	Federation bool `default:"false" group:"Schema" help:"Whether the service is a subgraph of a Federation 2 graph: it answers _service and _entities, and schema prints the schema of the subgraph."`

	Shared Shared `embed:"" prefix:"shared-" group:"Several replicas"`

	Cache Cache `embed:"" prefix:"cache-" group:"Cache"`
	Demo  Demo  `embed:"" prefix:"demo-" group:"Demo venue"`
}

// JWT configures the tokens of an identity provider.
type JWT struct {
	Issuer       string `placeholder:"TEXT" check:"text" help:"Issuer of JSON Web Tokens that are accepted as bearer tokens, exactly as in their claim iss. It needs the other settings of this group and --accounts-file. Empty accepts none."`
	Audience     string `placeholder:"TEXT" check:"text" help:"Audience that the claim aud must contain."`
	JWKSURL      string `name:"jwks-url" placeholder:"URL" check:"venue" help:"URL of the issuer's public keys, jwks_uri in its discovery document: https://, or http:// on a loopback address. The keys are read every ten minutes, and when a token names an unknown key."`
	AccountClaim string `default:"sub" check:"text" help:"Claim that names the subject of an account in the accounts file."`
}

// Client bounds the connections and operations of one client.
type Client struct {
	Sockets     int `default:"2000" min:"1" max:"1000000" help:"TCP connections of one client address, which is 64 bits of an IPv6 address. Trusted proxies have no such bound."`
	Connections int `default:"1000" min:"1" max:"1000000" help:"WebSockets and event streams of one account, or of all clients without an account at one address, which is 64 bits of an IPv6 address."`
	Operations  int `default:"9000" min:"1" max:"10000000" help:"Operations at once on the WebSockets and event streams of one account, or of all clients without an account at one address. Half as many may be different subscriptions, and these may follow three times as many ids. All clients together may have 12,000 operations, or a third more than this number if that is more, and a third more different subscriptions and ids than one client. One client may take at most three times as many places as are still free."`
}

// Documents configures persisted documents. Clients may send the id of such a document instead of its text.
type Documents struct {
	Automatic Bytes  `default:"8MiB" min:"0" max:"1GiB" help:"Memory for automatic persisted queries, which clients register themselves. 0 disables them."`
	Trusted   string `default:"off" oneof:"off,allow,require" help:"Use of the documents in the manifest: off means that there is no manifest, allow executes the documents of the manifest and all others, require executes only the documents of the manifest and of the service's pages."`
	Manifest  string `placeholder:"FILE" check:"file" help:"Manifest of trusted documents, Apollo's format or a map of ids to texts. Changes take effect within a second."`
}

// Limit contains the limits of a single operation.
type Limit struct {
	Depth int   `default:"20" min:"1" max:"1000" help:"Nesting of fields, lists and objects."`
	Cost  int64 `default:"100000" min:"1" max:"1000000000000" help:"Points of an operation: one for each value, 40 for each id that is read in a list of ids, 1000 for each read that needs a call of its own to the venue."`
	Calls int   `default:"200" min:"1" max:"1000000" help:"Calls to the venue that one operation, or one event of a subscription, may make. Cached values take none."`
}

// Log configures the level and format of the log.
type Log struct {
	Level  slog.Level `default:"info" oneof:"debug,info,warn,error" help:"Lowest level that is logged."`
	Format string     `default:"text" oneof:"text,json" help:"Format of a log line."`
}

// Venue configures the venue's address and calls.
type Venue struct {
	// Name is the name with which the ids of a further venue begin: that of its driver or of its file. The first venue has none.
	Name        string        `kong:"-"`
	Driver      string        `default:"generic" check:"text" help:"Driver of the venue's API. generic reads the documented API. The pages in docs/venues describe each driver."`
	URL         string        `name:"url" placeholder:"URL" check:"venue" help:"Base URL of the venue, with or without a path. Empty means the driver's own addresses, or the embedded demo venue if --demo-driver is the same driver."`
	Credentials string        `default:"auto" oneof:"auto,query,header,none,public" help:"How the service sends a caller's credentials to the venue: query is the credentials parameter, header is X-Api-Credentials, none sends nothing. With none, user data is served only to bearer tokens, each for the address of its account. With public, every account is served to everybody by its address; only some drivers allow it, because their venues show accounts to everybody. auto means public with these drivers, header with the embedded demo venue unless it is strict, and query in all other cases."`
	Currency    string        `placeholder:"CODE" check:"currency" help:"Currency of the venue's money for serviceStatus: a code of ISO 4217 such as USD, or the venue's own unit. Empty means the currency of the driver, or USD with the demo venue. With the generic driver and a real venue, empty means that the currency is unknown."`
	Timeout     time.Duration `default:"10s" min:"1ms" max:"5m" help:"Longest time for one call to the venue, including its body."`
	Batch       int           `default:"100" min:"1" max:"1000" help:"Maximum number of ids in one call to the venue. The length of the URL also limits this number."`
	Table       List          `placeholder:"SETTINGS" check:"settings" help:"How the generic driver asks the venue, such as market-ids:none,spreads:books. config check --ask prints these settings, and docs/venues/generic.md explains them. The service finds out after the start what is not set."`

	KeyID   string `placeholder:"ID" check:"text" help:"Id of this service's own API key at the venue. Only the driver kalshi uses it, to sign the handshake of its stream and the calls for order books. --venue-key-file contains the private key. The key is never used for callers."`
	KeyFile string `placeholder:"FILE" check:"file" help:"PEM file with the private key of --venue-key-id. Only its owner should have access."`

	PublicPerMinute int `default:"100" min:"0" max:"1000000" help:"Requests a minute that the venue allows one IP address. The service leaves a twentieth unused. 0 means no limit. The demo venue's own limit replaces this value."`
	KeyPerMinute    int `default:"300" min:"0" max:"1000000" help:"Requests a minute that the venue allows one API key. The service leaves a twentieth unused. 0 means no limit. The demo venue's own limit replaces this value."`
}

// Shared configures what several replicas share.
type Shared struct {
	URL        string        `name:"url" placeholder:"URL" check:"redis" help:"Redis or Valkey that makes several replicas one service: redis://, rediss:// with TLS, or unix://. Add user and password if it has accounts, and ?master_set=NAME if the hosts are Sentinels. Empty shares nothing."`
	Replicas   int           `default:"5" min:"1" max:"1000" help:"Maximum number of replicas that run at once, including those that are starting or stopping. While Redis does not answer, each replica uses an equal part of the venue's limit."`
	Timeout    time.Duration `default:"25ms" min:"1ms" max:"1s" help:"Longest time for one call to Redis. After five failures in a row Redis is not used until it answers again."`
	SecretFile string        `placeholder:"FILE" check:"file" help:"File with a secret of at least 32 bytes that all replicas share. It hides credentials in Redis, so that the replicas share the limit of each API key. Without the secret, each replica uses an equal part of that limit."`
}

// Demo configures the embedded venue.
type Demo struct {
	// Driver is the first of Drivers. Other is the place of the venue among Drivers: all have the same events, but each has its own prices.
	Driver string `kong:"-"`
	Other  uint64 `kong:"-"`

	Drivers         List          `name:"driver" default:"generic" oneof:"generic,polymarket,kalshi" help:"API of the demo venue: generic is the documented one; polymarket and kalshi simulate these venues with synthetic data. Several, separated by commas, are as many venues with the same events, and need neither --venue-driver nor --more-venues. --demo-strict, --demo-without and the limits of requests a minute need generic."`
	Listen          string        `default:"127.0.0.1:0" check:"listen" help:"Address of the demo venue. Port 0 takes a free port and logs it."`
	Latency         time.Duration `default:"0s" min:"0s" max:"1m" help:"Minimum time of every response of the demo venue."`
	Control         bool          `default:"false" help:"Whether the demo venue serves /__control, where tests and benchmarks read counters and set faults. If service and demo venue listen on loopback addresses without --trusted-proxies, the live board can cause faults too."`
	Markets         int           `default:"1200" min:"1" max:"100000" help:"Markets in the demo venue, each with two to eight tokens."`
	Seed            int64         `default:"1" min:"0" max:"9223372036854775807" help:"Seed of the demo venue's data. The same seed gives the same markets."`
	PublicPerMinute int           `default:"0" min:"0" max:"1000000" help:"Requests a minute that the demo venue allows one IP address. 0 means no limit."`
	KeyPerMinute    int           `default:"0" min:"0" max:"1000000" help:"Requests a minute that the demo venue allows one API key. 0 means no limit."`
	Strict          bool          `default:"false" help:"Whether the demo venue supports only the documented features. It then refuses unknown parameters and omits additional members. It accepts credentials only as a parameter, and only in exactly the text that it documents."`
	Lag             time.Duration `default:"0s" min:"0s" max:"10m" help:"Maximum age of the demo venue's responses, given in their Cache-Control and Age. Its stream has no lag."`
	Without         List          `placeholder:"ENDPOINTS" oneof:"prices,orderbook,price-history,spreads,market-search,market-details,balance,positions,orders,trades,history" help:"Endpoints that the demo venue does not have, separated by commas. They answer 404."`
	Stream          bool          `default:"true" help:"Whether the service uses the demo venue's stream. Without it everything is read over REST."`
	Still           bool          `default:"false" help:"Whether the demo market never changes, so that equal requests get equal responses."`
}

// Cache contains the limits for each kind of cached data.
type Cache struct {
	Price   Expiry `kong:"embed,prefix='price-',set='kind=price',set='fresh=1s',set='then=For 30 seconds after that, it is still served while it is refreshed.'"`
	Book    Expiry `kong:"embed,prefix='book-',set='kind=order book',set='fresh=500ms',set='then=For ten seconds after that, it is still served while it is refreshed.'"`
	Spread  Expiry `kong:"embed,prefix='spread-',set='kind=spread',set='fresh=1s',set='then=For 30 seconds after that, it is still served while it is refreshed.'"`
	Market  Expiry `kong:"embed,prefix='market-',set='kind=market',set='fresh=1m',set='then=For an hour after that, it is still served while it is refreshed.'"`
	Search  Expiry `kong:"embed,prefix='search-',set='kind=page of search results',set='fresh=15s',set='then=For five minutes after that, it is still served while it is refreshed.'"`
	History Expiry `kong:"embed,prefix='history-',set='kind=price history',set='fresh=1m',set='then=For an hour after that, it is still served while it is refreshed.'"`
	User    Expiry `kong:"embed,prefix='user-',set='kind=user read',set='fresh=2s',set='then=It is never served later.'"`
	// Stretch is how long public data is served after its fresh time while calls to the venue fail or would have to wait.
	Stretch time.Duration `default:"15m" min:"0s" max:"168h" help:"How long after its fresh time public data is still served while calls to the venue fail or would have to wait. Such data is marked as stale."`
	// Memory bounds the cached data of all kinds in bytes, and Responses the cached responses. With AutoBytes the program chooses.
	Memory    Bytes `default:"auto" auto:"" min:"1MiB" max:"64GiB" help:"Memory for cached data of all kinds. auto takes a sixth of the smallest that is set of GOMEMLIMIT, the container's limit and the machine's memory, at most 171 MiB."`
	Responses Bytes `default:"auto" auto:"" min:"0" max:"64GiB" help:"Memory for whole responses. A response stays cached while an execution would give the same response. auto takes a twelfth of the memory, at most 85 MiB. 0 caches none."`
}

// Expiry configures one kind of data.
type Expiry struct {
	// Fresh is how long a value is served without a call to the venue. If Fresh is 0, each read calls the venue, unless the stream
	// keeps the value current. While Cache.Stretch applies, public data is also served without a call.
	Fresh time.Duration `default:"${fresh}" min:"0s" max:"24h" help:"How long one ${kind} is served without a call to the venue. ${then} With 0s, each read calls the venue. Exceptions are values that the stream keeps current, and public values while --cache-stretch applies."`
}

// Auto is a value of Venue.Credentials and Config.Explain. It means that the program chooses the setting. AutoBytes is the same for
// the sizes in Cache.
const (
	Auto            = "auto"
	AutoBytes Bytes = -1
)

// CredentialsPublic is the value of Venue.Credentials with which the service reads accounts by address, without credentials of the
// client. All further venues have it.
const CredentialsPublic = "public"

// Off is the value that disables Config.AdminListen.
const Off = "off"

// Parse reads the arguments, the environment and the configuration file. args does not contain the program's name. environ has the
// form of os.Environ. For --help, Parse writes the help to out and returns ErrHelp. Any other error describes all problems, one on
// each line, and comes with a Config that lacks the invalid values. An empty variable counts as unset. CommandSchema, CommandVersion and CommandLicenses ignore environ and the file.
func Parse(args, environ []string, out io.Writer) (*Config, error) {
	return newParser(environ, out).parse(args)
}

// healthAddress returns the flag and the address of the listener that CommandHealthcheck checks. This is the private address if there
// is one, because clients cannot use up its connections.
func (c Config) healthAddress() (flag, address string) {
	if c.AdminListen == Off {
		return "listen", c.Listen
	}
	return "admin-listen", c.AdminListen
}

// HealthcheckURL returns the URL at which CommandHealthcheck checks a server with this Config on the same host.
func (c Config) HealthcheckURL() string {
	_, address := c.healthAddress()
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return (&url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/healthz"}).String()
}
