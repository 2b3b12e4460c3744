package main

import (
	"context"
	"fmt"
	"sync"

	"oddsgraph/graph"
	"oddsgraph/internal/accounts"
	"oddsgraph/internal/config"
	"oddsgraph/internal/documents"
	"oddsgraph/internal/guard"
	"oddsgraph/internal/httpapi"
	"oddsgraph/internal/market"
	"oddsgraph/internal/quota"
	"oddsgraph/internal/telemetry"
	"oddsgraph/resolvers"
)

// files are what is read again when it changes.
type files struct {
	accounts  *accounts.Store // nil where no bearer tokens are known
	documents *documents.Store
}

// watch looks at the files until ctx ends.
func (f *files) watch(ctx context.Context) {
	var g sync.WaitGroup
	if f.accounts != nil {
		g.Go(func() { f.accounts.Run(ctx) })
	}
	g.Go(func() { f.documents.Run(ctx) })
	g.Wait()
}

// frontDoor wires what clients talk to.
func (s *server) frontDoor(cfg *config.Config, root *resolvers.Resolver, clock market.Clock) (*httpapi.API, error) {
	executed := graph.Config{Resolvers: root}
	schema := graph.NewExecutableSchema(executed)
	proxies, err := accounts.ParseProxies(cfg.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("--trusted-proxies (ODDSGRAPH_TRUSTED_PROXIES): %w", err)
	}
	front := httpapi.Config{
		Schema: schema, SDL: sdl, Sources: sources(s.cache), Log: s.log,
		MaxBody: int64(cfg.MaxBody), BodyTimeout: cfg.BodyTimeout, Timeout: cfg.RequestTimeout,
		ResponseBytes: int64(cfg.Cache.Responses), Clock: clock,
		Operations: cfg.MaxOperations, Queue: cfg.MaxQueue, QueueTimeout: cfg.QueueTimeout,
		Introspection: cfg.Introspection, Suggestions: cfg.Suggestions, Origins: cfg.Origins,
		Refusals: accounts.NewRefusals(clock), Client: proxies.ClientAddress, RequestID: telemetry.RequestID,
		Clients: quota.Limits{
			Connections: cfg.Client.Connections, Operations: cfg.Client.Operations, Executions: cfg.Client.Executions, Watched: cfg.Client.Watched,
		},
		Sockets: httpapi.Sockets{Operations: cfg.Client.PerSocket, Frame: int64(cfg.Client.Message)},
		Ready:   s.ready, Operation: s.metrics.Operation,
	}
	if cfg.Compiled {
		front.Compiler = graph.NewCompiler(executed)
	}
	if cfg.AccountsFile != "" {
		if s.files.accounts, err = accounts.Open(cfg.AccountsFile, s.log); err != nil {
			return nil, fmt.Errorf("--accounts-file (ODDSGRAPH_ACCOUNTS_FILE): %w", err)
		}
		front.Accounts = s.files.accounts
		s.files.accounts.OnRevoke(s.forget)
	}
	if front.Guard, err = guard.New(limits(cfg.Limit), schema.Schema()); err != nil {
		return nil, err
	}
	s.files.documents, err = documents.Open(documents.Config{
		AutomaticBytes: int(cfg.Documents.Automatic), Mode: documents.Mode(cfg.Documents.Trusted), Manifest: cfg.Documents.Manifest,
		Validate: httpapi.Validator(front), Log: s.log,
	})
	if err != nil {
		return nil, fmt.Errorf("--documents-manifest (ODDSGRAPH_DOCUMENTS_MANIFEST): %w", err)
	}
	front.Documents = s.files.documents
	return httpapi.New(front), nil
}

// forget lets go of what the venue was asked for with the credentials of an account that was revoked, as soon as those who
// had it have left.
func (s *server) forget(a *accounts.Account) {
	s.api.Forget(a.Credentials)
	ctx := market.WithCredentials(context.Background(), a.Credentials)
	s.live.feed.Hasten(func(t market.Topic) bool {
		return t.Channel == market.ChannelUser && t.Scope == s.cache.Scope(ctx, market.Address(t.ID))
	})
}

// limits are those of the guard.
func limits(c config.Limit) guard.Limits {
	l := guard.Default()
	l.DocumentBytes, l.VariableBytes, l.Cost = int(c.Document), int(c.Variables), c.Cost
	l.Tokens, l.Fragments, l.Selections, l.Depth, l.RootFields = c.Tokens, c.Fragments, c.Selections, c.Depth, c.RootFields
	l.Aliases, l.Repeats, l.Directives, l.ListItems = c.Aliases, c.Repeats, c.Directives, c.ListItems
	return l
}
