package app

import (
	"fmt"
	"net"
	"net/url"

	"oddsgraph/internal/config"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/stream"
)

// spareFiles is the number of open files that the program needs besides clients and streams: calls to the venue, connections to Redis
// and to the private address, logs and files.
const spareFiles = 128

// warnings returns a text for each setting that works, but is probably a mistake. The texts contain no secrets.
func warnings(cfg *config.Config) (out []string) {
	out = credentialWarnings(cfg)
	if host, _, _ := net.SplitHostPort(cfg.Listen); embedded(cfg) && !loopback(host) {
		out = append(out, fmt.Sprintf("--venue-url is not set, so --listen=%s serves the made-up prices of the demo venue to other machines; set --venue-url (ODDSGRAPH_VENUE_URL)", cfg.Listen))
	}
	if host, _, err := net.SplitHostPort(cfg.AdminListen); err == nil && public(host) {
		out = append(out, fmt.Sprintf("--admin-listen=%s serves metrics, profiles and the flush of caches without a password; make sure that only your monitoring can reach it", cfg.AdminListen))
	}
	if limit, ok := maxOpenFiles(); ok {
		out = append(out, fileWarnings(cfg, limit)...)
	}
	return out
}

func fileWarnings(cfg *config.Config, limit uint64) []string {
	others := 0
	for _, c := range venues(cfg) {
		ofVenue := spareFiles + c.StreamTopics/stream.DefaultTopicsPerConnection
		if embedded(c) {
			ofVenue *= 2 // both ends of the connections to the demo venue
		}
		others += ofVenue
	}
	need := uint64(cfg.MaxConnections + others)
	if limit >= need {
		return nil
	}
	remedy := fmt.Sprintf("raise it to %d (ulimit -n, LimitNOFILE)", need)
	if limit > uint64(others) {
		remedy += fmt.Sprintf(", or set --max-connections=%d", limit-uint64(others))
	}
	return []string{fmt.Sprintf("the process may open %d files, too few for --max-connections=%d: with many clients, the private address will not answer either; %s", limit, cfg.MaxConnections, remedy)}
}

func credentialWarnings(cfg *config.Config) (out []string) {
	if sentCredentials(cfg) == rest.CredentialsNone {
		return nil
	}
	for _, setting := range []struct{ name, url string }{{"--venue-url", cfg.Venue.URL}, {"--stream-url", cfg.StreamURL}} {
		u, err := url.Parse(setting.url)
		if err != nil || u.Scheme != "http" && u.Scheme != "ws" {
			continue
		}
		if !loopback(u.Hostname()) {
			out = append(out, fmt.Sprintf("%s sends callers' credentials unencrypted to %s; use %ss if the venue has it", setting.name, u.Hostname(), u.Scheme))
		}
	}
	return out
}

// public reports whether machines outside the private network may reach a host: a public address, or every address of the machine.
func public(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && !ip.IsLoopback() && !ip.IsPrivate() && !ip.IsLinkLocalUnicast()
}
