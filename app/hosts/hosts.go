// Package hosts refuses requests whose Host header names a host that is not served here. A page in a browser can let its own
// name lead to a loopback or private address (DNS rebinding); the browser then takes the service for the page's own host, and
// only the Host header shows the difference.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Any among the names of Guard lets all names pass.
const Any = "*"

// Guard passes requests to next whose host is localhost, an IP address, or one of names, whatever the port. It refuses the
// others with status 403 and the text refusal. applies reports whether a request is checked at all.
func Guard(names []string, refusal string, applies func(*http.Request) bool, next http.Handler) http.Handler {
	if slices.Contains(names, Any) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if applies(r) && !served(r.Host, names) {
			http.Error(w, refusal, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Always lets Guard check every request.
func Always(*http.Request) bool { return true }

// OnLoopback reports whether a request came to a loopback address of this machine.
func OnLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// served reports whether the host of a request is an address, which no name server can redirect, localhost, or one of names. It
// parses an address last, since what is none costs an error. A request without a host, which HTTP/1.0 allows, is no browser's.
func served(host string, names []string) bool {
	if host == "" {
		return true
	}
	name := host
	if strings.IndexByte(host, ':') >= 0 {
		if before, _, err := net.SplitHostPort(host); err == nil {
			name = before
		}
	}
	if len(name) > 1 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	}
	if strings.EqualFold(name, "localhost") || slices.ContainsFunc(names, func(known string) bool { return strings.EqualFold(known, name) }) {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil
}
