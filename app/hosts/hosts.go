// Package hosts refuses requests whose Host header is not a name of the service. The owner of a web page can make the page's host
// name resolve to a loopback or private address (DNS rebinding). The browser then treats the service as the page's own host. Only
// the Host header shows the attack.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Any allows all host names if it is in the list given to Guard.
const Any = "*"

// Guard passes a request to next if its host is localhost, an IP address, an element of names, or missing. The port does not
// matter. Guard passes other requests to refuse; see Refuse. Guard does not check the host if filter returns false
// for the request, or if names contains Any.
func Guard(names []string, refuse http.HandlerFunc, filter func(*http.Request) bool, next http.Handler) http.Handler {
	if slices.Contains(names, Any) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filter(r) && !served(r.Host, names) {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Refuse returns a handler that refuses requests with status 403 and the given text.
func Refuse(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusForbidden) }
}

// Always is a filter for Guard that returns true for every request.
func Always(*http.Request) bool { return true }

// OnLoopback reports whether a request came to a loopback address of this machine.
func OnLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// served reports whether the host of a request is localhost, an element of names, an IP address, or missing. DNS rebinding needs a
// host name, so IP addresses are safe. served parses the host as an IP address last, because a failed parse allocates an error. A
// request without a host is safe, because browsers do not send such requests; HTTP/1.0 allows them.
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
