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
	// maxProxies bounds the configured networks, maxHops the entries of a header that are looked at.
	maxProxies = 256
	maxHops    = 32
	// maxHop is the greatest length of an address with a port in a header.
	maxHop = 64
)

// Proxies are the networks whose word about a client's address is taken. The zero value trusts nobody. They are
// read-only.
type Proxies []netip.Prefix

// ParseProxies reads addresses and prefixes such as 10.0.0.0/8 and fd00::1.
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
		return none, fmt.Errorf("the trusted proxy %q is everybody, so that every client could say who it is; name the proxies' own network", text)
	}
	if p != p.Masked() {
		return none, fmt.Errorf("the trusted proxy %q has bits behind its prefix; write %s", text, p.Masked())
	}
	return p, nil
}

// ClientAddress returns the address that a request comes from: the peer's, or if that is a trusted proxy the last one in
// X-Forwarded-For that is none. A proxy adds the address that it sees at the right end, and whatever stands to the left
// of an entry by somebody who isn't trusted may be made up. An entry that is no address ends the search, as does the
// 32nd: the answer is the last address that a trusted proxy vouched for. It is invalid when the peer has none, as on a
// Unix socket.
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

// fromRight yields the elements of comma-separated lists that continue each other, last one first.
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

// TrustsPeer reports whether a request comes straight from a trusted proxy, so that its headers are that proxy's word.
func (p Proxies) TrustsPeer(r *http.Request) bool {
	return len(p) > 0 && p.Trusts(parseHop(r.RemoteAddr))
}

// Trusts reports whether an address is that of a trusted proxy.
func (p Proxies) Trusts(addr netip.Addr) bool {
	for _, network := range p {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// parseHop reads an address with or without a port, an IPv6 one in brackets or not. Anything else is invalid.
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
