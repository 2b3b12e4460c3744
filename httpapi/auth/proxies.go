package auth

import (
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const (
	maxProxies = 256
	// maxHops is the greatest number of entries of X-Forwarded-For that are checked in one request.
	maxHops = 32
	// maxHop is the greatest accepted length of an address with a port, in bytes.
	maxHop = 64
)

// Proxies are the networks of proxies that are trusted to report a client's address. The zero value trusts no proxy. Proxies must
// not be changed.
type Proxies []netip.Prefix

// ParseProxies parses addresses and prefixes such as 10.0.0.0/8 and fd00::1.
func ParseProxies(texts []string) (Proxies, error) {
	if len(texts) > maxProxies {
		return nil, fmt.Errorf("there are %d trusted proxies; at most %d can be named", len(texts), maxProxies)
	}
	var out Proxies
	for _, text := range texts {
		p, err := parseProxy(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func parseProxy(text string) (netip.Prefix, error) {
	var none netip.Prefix
	p, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return none, fmt.Errorf("a trusted proxy is an address or a prefix such as 10.0.0.0/8 or fd00::1, not %q", text)
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return none, fmt.Errorf("the trusted proxy %q is neither an IPv4 nor an IPv6 network", text)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p.Bits() == 0 {
		return none, fmt.Errorf("the trusted proxy %q contains all addresses, so every client could forge its address; name the network of the proxies", text)
	}
	if p != p.Masked() {
		return none, fmt.Errorf("the trusted proxy %q has bits set after its prefix; write %s", text, p.Masked())
	}
	return p, nil
}

// ClientAddress returns the address of a request's client. If the peer is not a trusted proxy, the result is the peer's address.
// If the peer is a trusted proxy, the result is the last address in X-Forwarded-For that does not belong to a trusted proxy.
//
// Each proxy appends the address of its peer. So a client can forge every entry to the left of the result. The search goes from
// right to left. It also ends before an invalid entry, after 32 entries, and at the start of the header. Then the result is the
// last address that the search has accepted. This address belongs to a trusted proxy, possibly the peer. The result is invalid if
// the peer has no address, as on a Unix socket.
func (p Proxies) ClientAddress(r *http.Request) netip.Addr {
	client, hops := parseHop(r.RemoteAddr), 0
	if !p.Trusts(client) {
		return client
	}
	for text := range fromRight(r.Header.Values("X-Forwarded-For")) {
		hop := parseHop(text)
		if hops++; hops > maxHops || !hop.IsValid() {
			return client
		}
		if client = hop; !p.Trusts(client) {
			return client
		}
	}
	return client
}

// fromRight yields the elements of comma-separated lines from last to first.
func fromRight(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(lines) {
			for more := true; more; {
				comma := strings.LastIndexByte(line, ',')
				if !yield(strings.Trim(line[comma+1:], " \t")) {
					return
				}
				if more = comma >= 0; more {
					line = line[:comma]
				}
			}
		}
	}
}

// TrustsPeer reports whether a request comes directly from a trusted proxy. The headers of other requests cannot be trusted.
func (p Proxies) TrustsPeer(r *http.Request) bool {
	return len(p) > 0 && p.Trusts(parseHop(r.RemoteAddr))
}

// Trusts reports whether an address belongs to a trusted proxy.
func (p Proxies) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// parseHop parses an address with or without a port and brackets. For any other text, it returns the zero netip.Addr.
func parseHop(s string) netip.Addr {
	if len(s) > maxHop {
		return netip.Addr{}
	}
	if both, err := netip.ParseAddrPort(s); err == nil {
		return both.Addr().Unmap().WithZone("")
	}
	if inner, bracketed := strings.CutPrefix(s, "["); bracketed && strings.HasSuffix(inner, "]") && strings.Contains(inner, ":") {
		s = inner[:len(inner)-1]
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}
