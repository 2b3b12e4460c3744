package auth

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestClientAddress(t *testing.T) {
	proxies, err := ParseProxies([]string{"10.0.0.0/8", "fd00::/8", "192.0.2.7"})
	if err != nil {
		t.Fatal(err)
	}
	trustedHops := func(n int) string { return strings.Repeat("10.9.9.9, ", n) }
	for _, test := range []struct {
		peer   string
		header []string
		want   string
	}{
		{"203.0.113.5:99", nil, "203.0.113.5"},
		{"203.0.113.5:99", []string{"1.1.1.1"}, "203.0.113.5"}, // the peer is not trusted
		{"10.0.0.1:99", nil, "10.0.0.1"},
		{"10.0.0.1:99", []string{""}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"1.1.1.1"}, "1.1.1.1"},
		{"10.0.0.1:99", []string{"6.6.6.6, 1.1.1.1"}, "1.1.1.1"}, // the client wrote 6.6.6.6
		{"10.0.0.1:99", []string{"6.6.6.6,1.1.1.1 ,\t10.0.0.2"}, "1.1.1.1"},
		{"10.0.0.1:99", []string{"6.6.6.6", "1.1.1.1, 10.0.0.2", "192.0.2.7"}, "1.1.1.1"},
		{"10.0.0.1:99", []string{"1.1.1.1", "6.6.6.6"}, "6.6.6.6"},
		{"10.0.0.1:99", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"}, // all addresses are proxies
		{"10.0.0.1:99", []string{"1.1.1.1, unknown"}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"1.1.1.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"10.0.0.1:99", []string{"1.1.1.1,"}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"1.1.1.1:4711"}, "1.1.1.1"},
		{"10.0.0.1:99", []string{"2001:db8::1"}, "2001:db8::1"},
		{"10.0.0.1:99", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"10.0.0.1:99", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		{"10.0.0.1:99", []string{"2001:db8::1%eth0"}, "2001:db8::1"},
		{"10.0.0.1:99", []string{"::ffff:1.1.1.1"}, "1.1.1.1"},
		{"10.0.0.1:99", []string{"1.1.1.1, ::ffff:10.0.0.2"}, "1.1.1.1"},
		{"10.0.0.1:99", []string{"[1.1.1.1]"}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"[2001:db8::1"}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"2001:db8::1]"}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"1.1.1.1%" + strings.Repeat("x", 1<<16)}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"fe80::1%" + strings.Repeat("x", maxHop)}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"256.1.1.1"}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"01.1.1.1"}, "10.0.0.1"},
		{"10.0.0.1:99", []string{"1.1.1.1, " + trustedHops(maxHops-2) + "10.0.0.2"}, "1.1.1.1"},
		{"10.0.0.1:99", []string{"1.1.1.1, " + trustedHops(maxHops-1) + "10.0.0.2"}, "10.9.9.9"},
		{"10.0.0.1:99", []string{"1.1.1.1, " + trustedHops(1<<16)}, "10.0.0.1"},
		{"[fd00::1]:99", []string{"1.1.1.1"}, "1.1.1.1"},
		{"[::ffff:10.0.0.1]:99", []string{"1.1.1.1"}, "1.1.1.1"},
		{"10.0.0.1", []string{"1.1.1.1"}, "1.1.1.1"},
		{"@", []string{"1.1.1.1"}, "invalid IP"}, // a Unix socket
		{"", nil, "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{"X-Forwarded-For": slices.Clone(test.header), "Forwarded": {"for=7.7.7.7"}}}
		if got := proxies.ClientAddress(r).String(); got != test.want {
			t.Errorf("peer %s, header %.100q: the client's address is %s, want %s", test.peer, test.header, got, test.want)
		}
		if !slices.Equal(r.Header["X-Forwarded-For"], test.header) {
			t.Errorf("ClientAddress changed the header to %.100q", r.Header)
		}
		if got := (Proxies)(nil).ClientAddress(r); got != parseHop(test.peer) {
			t.Errorf("peer %s without trusted proxies: the client's address is %s, want the peer's address", test.peer, got)
		}
	}
}

func TestParseProxies(t *testing.T) {
	got, err := ParseProxies([]string{"10.0.0.0/8", " 192.0.2.1 ", "fd00::/8", "::1", "::ffff:10.1.0.0/112", "::ffff:10.2.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	if s, want := fmt.Sprint(got), "[10.0.0.0/8 192.0.2.1/32 fd00::/8 ::1/128 10.1.0.0/16 10.2.0.1/32]"; s != want {
		t.Errorf("the proxies are %s, want %s", s, want)
	}
	if none, err := ParseProxies(nil); err != nil || len(none) > 0 {
		t.Errorf("no texts: got %v and the error %v, want no proxies", none, err)
	}
	for text, want := range map[string]string{
		"":                  "is an address or a prefix",
		"proxy.example":     "is an address or a prefix",
		"10.0.0.0/33":       "is an address or a prefix",
		"fe80::1%eth0":      "is an address or a prefix",
		"10.0.0.1/8":        "write 10.0.0.0/8",
		"0.0.0.0/0":         "contains all addresses",
		"::/0":              "contains all addresses",
		"::ffff:0.0.0.0/96": "contains all addresses",
		"::ffff:0.0.0.0/80": "neither",
	} {
		if p, err := ParseProxies([]string{"10.0.0.0/8", text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v and the error %v, want an error with %q", text, p, err, want)
		}
	}
	if _, err := ParseProxies(slices.Repeat([]string{"10.0.0.1"}, maxProxies+1)); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("one proxy too many: got the error %v", err)
	}
}

// FuzzClientAddress compares ClientAddress with a simple loop over the elements of X-Forwarded-For.
func FuzzClientAddress(f *testing.F) {
	f.Add("10.0.0.1:1", "1.1.1.1, 10.0.0.2", "10.0.0.3")
	f.Add("1.1.1.1:1", "2.2.2.2", "")
	f.Add("[fd00::1]:1", "[2001:db8::1]:80,,", "fe80::1%e")
	proxies, err := ParseProxies([]string{"10.0.0.0/8", "fd00::/8"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, peer, first, second string) {
		got := proxies.ClientAddress(&http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {first, second}}})
		want := []netip.Addr{parseHop(peer)}
		elements := strings.Split(first+","+second, ",")
		slices.Reverse(elements)
		for _, e := range elements[:min(len(elements), maxHops)] {
			hop := parseHop(strings.Trim(e, " \t"))
			if !hop.IsValid() || !proxies.Trusts(want[len(want)-1]) {
				break
			}
			want = append(want, hop)
		}
		if last := want[len(want)-1]; got != last || got.Zone() != "" || got.Is4In6() {
			t.Fatalf("the client's address is %s, want %s", got, last)
		}
	})
}
