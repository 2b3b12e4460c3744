package app

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/cache"
	"oddsgraph/internal/config"
	"oddsgraph/internal/fleet"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/drivers"
)

// minSecret is the minimum length in bytes of the secret that the replicas share.
const minSecret = 32

// openFleet opens u.fleet if --shared-url is set, and makes the cache use it. It returns how the replicas share the venue's rate
// limits. If --shared-url is not set, it returns the zero value.
func (u *unit) openFleet(cfg *config.Config, reads *cache.Config) (sharing ratelimit.Sharing, err error) {
	c := cfg.Shared
	if c.URL == "" {
		return sharing, nil
	}
	secret, err := readSecret(c.SecretFile)
	if err != nil {
		return sharing, err
	}
	link := fleet.Config{
		URL: c.URL, Venue: venueName(cfg), Timeout: c.Timeout, CallTimeout: cfg.Venue.Timeout, Version: BuildVersion(), Clock: u.clock, Log: u.log,
	}
	for kind := upstream.Kind(0); kind < upstream.Kinds; kind++ {
		if !kind.User() {
			link.Kinds = append(link.Kinds, kind.String())
		}
	}
	link.Measured = func(sent, received, server time.Time) {
		u.health.clocks.measured(clockRedis, sent, received, server, server)
	}
	if u.Metrics != nil {
		link.Observe = u.Metrics.SharedCall
	}
	if u.fleet, err = fleet.Open(link); err != nil {
		return sharing, fmt.Errorf("--shared-url (ODDSGRAPH_SHARED_URL): %w", err)
	}
	u.opened = append(u.opened, u.fleet.Close)
	u.replicas, reads.CredentialsKey, reads.Shared = c.Replicas, secret, u.fleet
	return ratelimit.Sharing{Ledger: u.fleet, Replicas: c.Replicas, SameScopes: len(secret) > 0}, nil
}

// sharedStatus needs u.fleet, which must not be nil.
func (u *unit) sharedStatus() *model.SharedStatus {
	link := u.fleet.Stats()
	status := &model.SharedStatus{Connected: link.Connected, Since: link.Since, Replicas: link.Replicas}
	if link.LastError != "" {
		status.LastError = &link.LastError
	}
	if u.budget == nil {
		return status
	}
	if l := u.budget.Status().Shared; l != nil {
		status.Limit = &model.SharedLimit{Granted: l.Granted, Grantable: l.Left, Reserve: l.Part, ReserveUsed: l.PartUsed}
		if link.Hold.After(u.clock.Now()) {
			status.Limit.HoldUntil = &link.Hold
		}
	}
	return status
}

// readSecret reads the secret of the replicas from a file, without surrounding white space. It returns nil if the file's name is
// "".
func readSecret(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	secret, err := os.ReadFile(file)
	if secret = bytes.TrimSpace(secret); err == nil && len(secret) < minSecret {
		err = fmt.Errorf("%s has fewer than %d bytes", file, minSecret)
	}
	if err != nil {
		return nil, fmt.Errorf("--shared-secret-file (ODDSGRAPH_SHARED_SECRET_FILE): %w", err)
	}
	return secret, nil
}

func validateShared(cfg *config.Config) error {
	c := cfg.Shared
	if c.URL == "" {
		if c.SecretFile != "" {
			return errors.New("--shared-secret-file (ODDSGRAPH_SHARED_SECRET_FILE) is set without --shared-url (ODDSGRAPH_SHARED_URL)")
		}
		return nil
	}
	if embedded(cfg) {
		return errors.New("--shared-url (ODDSGRAPH_SHARED_URL) is set without --venue-url (ODDSGRAPH_VENUE_URL); each replica would have a demo venue of its own")
	}
	if err := fleet.CheckURL(c.URL); err != nil {
		return fmt.Errorf("--shared-url (ODDSGRAPH_SHARED_URL): %w", err)
	}
	if usable := ratelimit.Usable(cfg.Venue.PublicPerMinute); cfg.Venue.PublicPerMinute > 0 && c.Replicas > usable {
		return fmt.Errorf("--shared-replicas (%d) is more than the %d public calls a minute that --venue-public-per-minute permits; lower --shared-replicas",
			c.Replicas, usable)
	}
	for _, f := range families(drivers.Of(cfg.Venue.Driver).Limits()) {
		if f.Limit < c.Replicas {
			return fmt.Errorf("--shared-replicas (%d) is more than the %d calls in %v that the venue allows for %v: set it to %d or less",
				c.Replicas, f.Limit, f.Span, f.Endpoints, f.Limit)
		}
	}
	_, err := readSecret(c.SecretFile)
	return err
}
