package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"oddsgraph/app/hosts"
	"oddsgraph/graph"
	"oddsgraph/graph/model"
	"oddsgraph/httpapi"
	"oddsgraph/httpapi/auth"
	"oddsgraph/httpapi/auth/jwt"
	"oddsgraph/httpapi/limits"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/config"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/loaders"
	"oddsgraph/resolvers"
	"oddsgraph/web"
)

// files are the accounts, the keys of the identity provider and the trusted documents. watch keeps them up to date.
type files struct {
	Accounts  *auth.Store   // nil if there is neither an accounts file nor demo tokens
	verifier  *jwt.Verifier // nil without an identity provider
	Documents *persisted.Store
	Questions *questionsFile // nil without a file
}

// watch runs until ctx ends. It checks the files of the accounts, documents and questions for changes, and requests the keys of the identity
// provider periodically.
func (f *files) watch(ctx context.Context) {
	var g sync.WaitGroup
	if f.Accounts != nil {
		g.Go(func() { f.Accounts.Run(ctx) })
	}
	if f.verifier != nil {
		g.Go(func() { f.verifier.Run(ctx) })
	}
	if f.Questions != nil {
		g.Go(func() { f.Questions.Run(ctx) })
	}
	g.Go(func() { f.Documents.Run(ctx) })
	g.Wait()
}

// reload reads the files of the accounts, documents and questions again. It returns an error for each invalid file, and keeps that file's
// previous content in use.
func (f *files) reload() (wrong []error) {
	if f.Accounts != nil {
		if err := f.Accounts.Reload(); err != nil {
			wrong = append(wrong, err)
		}
	}
	if err := f.Documents.Reload(); err != nil {
		wrong = append(wrong, err)
	}
	if f.Questions != nil {
		if err := f.Questions.Reload(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// valid reports whether the present content of each file is in use.
func (f *files) valid() bool {
	return (f.Accounts == nil || f.Accounts.Status().Err == nil) && f.Documents.Status().Err == nil && (f.Questions == nil || f.Questions.Status().Err == nil)
}

func (f files) String() string {
	accounts := 0
	if f.Accounts != nil {
		accounts = f.Accounts.Status().Accounts
	}
	text := fmt.Sprintf("%d accounts, %d trusted documents", accounts, f.Documents.Status().Trusted)
	if f.Questions != nil {
		text += fmt.Sprintf(", %d questions", f.Questions.shown.Len())
	}
	return text
}

func openFiles(cfg *config.Config, front httpapi.Config, log *slog.Logger) (f files, err error) {
	var wrong []error
	if cfg.AccountsFile != "" {
		if f.Accounts, err = auth.Open(cfg.AccountsFile, log); err != nil {
			wrong = append(wrong, fmt.Errorf("--accounts-file (ODDSGRAPH_ACCOUNTS_FILE): %w", err))
		}
	}
	f.Documents, err = persisted.Open(persisted.Config{
		AutomaticBytes: int(cfg.Documents.Automatic), Mode: persisted.Mode(cfg.Documents.Trusted), Manifest: cfg.Documents.Manifest,
		Validate: httpapi.Validator(front), Pages: web.Documents(), Log: log,
	})
	if err != nil {
		wrong = append(wrong, fmt.Errorf("--documents-manifest (ODDSGRAPH_DOCUMENTS_MANIFEST): %w", err))
	}
	if cfg.QuestionsFile != "" {
		if f.Questions, err = openQuestions(cfg, log); err != nil {
			wrong = append(wrong, fmt.Errorf("--questions-file (ODDSGRAPH_QUESTIONS_FILE): %w", err))
		}
	}
	return f, errors.Join(wrong...)
}

func trustedProxies(cfg *config.Config) (auth.Proxies, error) {
	proxies, err := auth.ParseProxies(cfg.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("--trusted-proxies (ODDSGRAPH_TRUSTED_PROXIES): %w", err)
	}
	return proxies, nil
}

const (
	// bodyTimeout bounds the time from the first byte of a request to the end of its body. On a connection of 32 KiB/s, the largest
	// default body of 256 KiB arrives in eight seconds.
	bodyTimeout = 10 * time.Second
	// Up to queuedPerOperation requests wait for each place of --max-operations, for at most queueTimeout. A client that waits
	// longer would rather hear that the service is busy.
	queuedPerOperation = 2
	queueTimeout       = 2 * time.Second
	// loggedPerSecond is the number of successful operations and requests in a second that are logged. Of further ones, one in a
	// hundred is logged. 500 lines of 400 bytes are 17 GB a day.
	loggedPerSecond = 500
)

// NewFront returns the API's configuration without the fields that only an open App can fill, such as Documents and Sources.
func NewFront(cfg *config.Config, proxies auth.Proxies, executed graph.Config, log *slog.Logger) (front httpapi.Config, err error) {
	executed.Schema = graph.Schema(cfg.Federation)
	compiler := graph.NewCompiler(executed)
	_, responses := cacheBytes(cfg.Cache, memory())
	compiler.SetIDPrefix(model.IDPrefix(venueInIDs(cfg)))
	front = httpapi.Config{
		Compiler: compiler, SDL: graph.SDL(), Log: log,
		MaxBody: int64(cfg.MaxBody), BodyTimeout: bodyTimeout, Timeout: cfg.RequestTimeout,
		ResponseBytes: responses,
		MaxResponse:   int(cfg.MaxResponse), MaxOutput: maxOutput(cfg), SplitExecutions: 2 * cfg.StreamTopics,
		Operations: cfg.MaxOperations, Queue: queuedPerOperation * cfg.MaxOperations, QueueTimeout: queueTimeout,
		Introspection: cfg.Introspection, Suggestions: cfg.Suggestions, Origins: cfg.Origins, CORSHeaders: cfg.CORSHeaders,
		Unchecked: credentialsMode(cfg) == rest.CredentialsNone, PublicAccounts: accountsArePublic(cfg),
		Client: proxies.ClientAddress, Trusted: proxies.TrustsPeer,
		Shared: func(ctx context.Context) context.Context {
			return telemetry.WithRequestID(ctx, telemetry.NewRequestID())
		},
		Clients: quota.Limits{Connections: cfg.Client.Connections, Operations: cfg.Client.Operations},
		Pages:   []fs.FS{web.Built(), web.Plain()},
	}
	bounds := limits.Default()
	bounds.Depth, bounds.Cost = cfg.Limit.Depth, cfg.Limit.Cost
	front.Guard, err = limits.New(bounds, compiler.Schema())
	return front, err
}

func connectionLimits(cfg *config.Config, proxies auth.Proxies) quota.ConnectionLimits {
	return quota.ConnectionLimits{Total: cfg.MaxConnections, PerClient: cfg.Client.Sockets, Exempt: proxies.Trusts}
}

// guardHosts returns a handler that refuses requests whose Host is not a name of the service. Without this check a web page could
// reach the service under the page's host name (DNS rebinding). If no hosts are configured, the handler checks requests only if the
// service listens on a loopback address.
func guardHosts(cfg *config.Config, next http.Handler) http.Handler {
	if host, _, _ := net.SplitHostPort(cfg.Listen); len(cfg.Hosts) == 0 && !loopback(host) {
		return next
	}
	refuse := func(w http.ResponseWriter, r *http.Request) {
		const reason = "this name is not served here; allow it with --hosts (ODDSGRAPH_HOSTS)"
		telemetry.NoteRefusal(r, reason)
		hosts.Refuse(reason)(w, r)
	}
	return hosts.Guard(cfg.Hosts, refuse, hosts.Always, next)
}

// openAPI opens the files and the API. change may change the configuration of the API. It may be nil.
func (s *App) openAPI(cfg *config.Config, proxies auth.Proxies, change func(*httpapi.Config)) error {
	root := &resolvers.Resolver{
		Names: s.Venue.names, Status: s.Status, Clock: s.clock, Timeout: cfg.RequestTimeout, ListOrders: resolvers.NewListOrders(s.clock),
	}
	var sources []loaders.Sources
	for _, u := range s.Venues {
		root.Venues, root.Feeds = append(root.Venues, u.resolverVenue()), append(root.Feeds, u.Live.Feed)
		sources = append(sources, Sources(u.Cache, cfg.Limit.Calls))
	}
	root.Sources = loaders.Route(root.Names, sources)
	front, err := NewFront(cfg, proxies, graph.Config{Resolvers: root}, s.log)
	if err != nil {
		return err
	}
	if change != nil {
		change(&front)
	}
	if s.Files, err = openFiles(cfg, front, s.log); err != nil {
		return err
	}
	if root.QuestionFile, err = s.questions(); err != nil {
		return err
	}
	if s.Files.Accounts == nil && cfg.Demo.Driver == "generic" && s.hasPrivateDemo(cfg) {
		if s.Files.Accounts, err = demoTokens(); err != nil {
			return err
		}
	}
	if s.Files.Accounts != nil {
		tokens := auth.Tokens{File: s.Files.Accounts}
		if j := cfg.JWT; j.Issuer != "" {
			s.Files.verifier = jwt.New(jwt.Config{
				Issuer: j.Issuer, Audience: j.Audience, URL: j.JWKSURL, Claim: j.AccountClaim,
				Account: s.Files.Accounts.Subject, Clock: s.clock, Log: s.log,
			})
			tokens.Signed = s.Files.verifier.Account
		}
		front.Accounts = tokens
		s.Files.Accounts.OnRevoke(s.forget)
	}
	front.Venues = len(sources)
	front.Documents, front.Sources, front.Clock = s.Files.Documents, root.Sources, s.clock
	front.Refusals, front.Ready, front.Impaired = auth.NewRefusals(s.clock), s.Ready, s.impairment
	front.LoopbackOrigins = s.Demo != nil && s.Demo.onLoopback()
	front.Explain = cfg.Explain == "on" || cfg.Explain == config.Auto && s.Demo != nil
	s.events = telemetry.NewOperations(s.log, loggedPerSecond)
	front.Observer = Observer(s.Metrics, s.events, s.Tracer)
	s.API = httpapi.New(front)
	return nil
}

// forget removes what the service holds for a revoked account: the cached responses, and the topics that no subscription watches.
func (s *App) forget(a *auth.Account) {
	s.API.Forget(a.Credentials)
	s.Venue.forget(a)
}
