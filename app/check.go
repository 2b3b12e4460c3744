package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"oddsgraph/graph"
	"oddsgraph/internal/config"
	"oddsgraph/internal/fleet"
	"oddsgraph/internal/market"
	"oddsgraph/internal/telemetry"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/resolvers"
)

// check checks everything that the service reads when it starts: the configuration, the files that the configuration names, and the
// trace settings in the environment. It returns the errors that it found. Without errors, it prints the warnings and then a line
// which says that the configuration is in order. It binds no port, and calls the venue and Redis only with --ask.
func check(ctx context.Context, cfg *config.Config, log *slog.Logger, stdout io.Writer) error {
	proxies, err := trustedProxies(cfg)
	wrong := []error{validate(cfg), checkTraces(ctx, log), err}
	front, err := NewFront(cfg, proxies, graph.Config{Resolvers: &resolvers.Resolver{}}, log)
	var files files
	if err == nil {
		files, err = openFiles(cfg, front, log)
	}
	if err := errors.Join(append(wrong, err)...); err != nil {
		return err
	}
	for _, warning := range warnings(cfg) {
		if _, err := fmt.Fprintln(stdout, "Warning:", warning); err != nil {
			return err
		}
	}
	if _, err = fmt.Fprintln(stdout, "The configuration is in order:", files); err != nil || !cfg.Ask {
		return err
	}
	if cfg.Log.Level > slog.LevelDebug {
		log = slog.New(slog.DiscardHandler) // the printed lines have all reasons
	}
	failed := askRedis(ctx, cfg, stdout)
	for _, c := range venues(cfg) {
		name := ""
		if len(cfg.More) > 0 {
			name = title(c)
			_, _ = fmt.Fprintf(stdout, "venue %s:\n", name) // ask returns an error of stdout
		}
		failed = errors.Join(failed, market.AtVenue(name, ask(ctx, c, log, stdout)))
	}
	return failed
}

// askRedis tries the Redis of --shared-url, if there is one, and prints a line with the result.
func askRedis(ctx context.Context, cfg *config.Config, stdout io.Writer) error {
	if cfg.Shared.URL == "" {
		return nil
	}
	took, failed := fleet.Try(ctx, fleet.Config{URL: cfg.Shared.URL, Venue: venueName(cfg)})
	result := fmt.Sprintf("answers within %v", took.Round(time.Microsecond))
	if failed == nil && took > cfg.Shared.Timeout {
		failed = fmt.Errorf("it took %v to answer, and --shared-timeout is %v", took.Round(time.Microsecond), cfg.Shared.Timeout)
	}
	if failed != nil {
		result = "error: " + failed.Error()
		failed = errors.New("the Redis of --shared-url (ODDSGRAPH_SHARED_URL) cannot be used; see above")
	}
	_, err := fmt.Fprintln(stdout, "Redis:", result)
	return errors.Join(failed, err)
}

func checkTraces(ctx context.Context, log *slog.Logger) error {
	tracer, err := telemetry.OpenTracer(BuildVersion(), log)
	if tracer == nil {
		return err
	}
	return tracer.Close(ctx) // there are no traces to send
}

func validate(cfg *config.Config) error {
	all := venues(cfg)
	if len(all) > market.MaxVenues {
		return fmt.Errorf("--more-venues (ODDSGRAPH_MORE_VENUES) and the first venue are %d venues; want at most %d", len(all), market.MaxVenues)
	}
	for i, c := range all {
		if err := validateVenue(c, all[:i]); i > 0 && err != nil {
			return fmt.Errorf("--more-venues (ODDSGRAPH_MORE_VENUES), venue %s: %w", title(c), err)
		} else if err != nil {
			return err
		}
	}
	if err := validateJWT(cfg); err != nil {
		return err
	}
	if clash(cfg.Listen, cfg.AdminListen) {
		return fmt.Errorf("--listen (ODDSGRAPH_LISTEN) is %s and --admin-listen (ODDSGRAPH_ADMIN_LISTEN) %s, which clash; want two ports", cfg.Listen, cfg.AdminListen)
	}
	return nil
}

// validateVenue checks a venue beside others. Two units for one venue would call it twice as often as its limit allows.
func validateVenue(cfg *config.Config, others []*config.Config) error {
	further := len(others) > 0
	if !slices.Contains(drivers.Names(), cfg.Venue.Driver) {
		return fmt.Errorf("--venue-driver=%s (ODDSGRAPH_VENUE_DRIVER) names no driver; want one of %s", cfg.Venue.Driver, strings.Join(drivers.Names(), ", "))
	}
	if !further && cfg.Venue.Credentials == config.CredentialsPublic && !drivers.Of(cfg.Venue.Driver).PublicAccounts {
		return fmt.Errorf("--venue-credentials=public (ODDSGRAPH_VENUE_CREDENTIALS) would show every account to everybody, and the driver %s does not declare accounts public; use query, header or none", cfg.Venue.Driver)
	}
	if err := drivers.CheckTable(cfg.Venue.Driver, cfg.Venue.Table); err != nil {
		return fmt.Errorf("--venue-table (ODDSGRAPH_VENUE_TABLE): %w", err)
	}
	if cfg.StreamURL != "" && embedded(cfg) {
		return errors.New("--stream-url (ODDSGRAPH_STREAM_URL) is set without --venue-url (ODDSGRAPH_VENUE_URL); set both, or neither for the demo venue")
	}
	if cfg.Venue.URL == "" && cfg.Venue.Driver == drivers.Generic && !embedded(cfg) {
		if further {
			return errors.New("the driver generic needs ODDSGRAPH_VENUE_URL")
		}
		return fmt.Errorf("--demo-driver=%[1]s (ODDSGRAPH_DEMO_DRIVER) needs --venue-driver=%[1]s; without it, only oddsgraph venue runs this venue", cfg.Demo.Driver)
	}
	if _, err := venueKey(cfg.Venue, nil); err != nil {
		return err
	}
	for _, other := range others {
		switch {
		case title(other) == title(cfg):
			return errors.New("another venue has this name; rename the file")
		case strings.TrimRight(venueName(other), "/") == strings.TrimRight(venueName(cfg), "/"):
			return fmt.Errorf("%s is the same venue", title(other))
		}
	}
	return validateShared(cfg)
}

func validateJWT(cfg *config.Config) error {
	j := cfg.JWT
	if j.Issuer == "" && j.Audience == "" && j.JWKSURL == "" {
		return nil
	}
	if j.Issuer == "" || j.Audience == "" || j.JWKSURL == "" || j.AccountClaim == "" {
		return errors.New("--jwt-issuer (ODDSGRAPH_JWT_ISSUER), --jwt-audience, --jwt-jwks-url and --jwt-account-claim belong together; set all of them, or none")
	}
	if cfg.AccountsFile == "" {
		return errors.New("--jwt-issuer (ODDSGRAPH_JWT_ISSUER) is set without --accounts-file (ODDSGRAPH_ACCOUNTS_FILE), which maps tokens to accounts")
	}
	if u, err := url.Parse(j.JWKSURL); err != nil || u.Scheme != "https" && !loopback(u.Hostname()) {
		return errors.New("--jwt-jwks-url (ODDSGRAPH_JWT_JWKS_URL) is not an https:// URL; over http:// an attacker on the network can replace the keys")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// clash reports whether two addresses have the same port and overlapping hosts. Equal hosts overlap. A host that means all
// addresses, such as 0.0.0.0, overlaps with every host. An address with port 0 never clashes.
func clash(a, b string) bool {
	host, port, _ := net.SplitHostPort(a)
	other, same, _ := net.SplitHostPort(b)
	every := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "" || ip != nil && ip.IsUnspecified()
	}
	return port != "" && port != "0" && port == same && (host == other || every(host) || every(other))
}
