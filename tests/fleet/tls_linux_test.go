package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/faults"
	"oddsgraph/tests/tool"
)

// freePort returns a port of 127.0.0.1 on which nothing listens. The port is below the range from which Linux chooses ports itself,
// so no other connection gets this port before the server starts.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + mathrand.IntN(20_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// certificates creates a certificate authority, which signs a certificate for 127.0.0.1. It returns the names of three files: the
// certificate of the authority, the signed certificate, and the key of the signed certificate.
func certificates(t *testing.T) (authority, certificate, key string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sign := func(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	rootKey, leafKey := newKey(), newKey()
	der, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return write("ca.pem", "CERTIFICATE", sign(root, root, rootKey, rootKey)), write("redis.pem", "CERTIFICATE", sign(leaf, root, leafKey, rootKey)),
		write("redis.key", "PRIVATE KEY", der)
}

// documentedUser returns the Redis command of docs/scaling.md that creates a user.
func documentedUser(t *testing.T) []string {
	t.Helper()
	root, err := tool.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "scaling.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`(ACL SETUSER oddsgraph [^`]+)`").FindSubmatch(text)
	if found == nil {
		t.Fatal("docs/scaling.md has no command that creates the Redis user")
	}
	return strings.Fields(string(found[1]))
}

// TestTLSAndUser checks that replicas can use Redis over TLS, with a private certificate authority and as the user of
// docs/scaling.md. A replica that does not trust the certificate must work without Redis.
func TestTLSAndUser(t *testing.T) {
	t.Parallel()
	authority, certificate, key := certificates(t)
	port := freePort(t)
	server := tool.StartRedis(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", authority, "--tls-auth-clients", "no")
	server.CLI(t, documentedUser(t)...)
	v := openVenue(t, demo.Config{Markets: 50, Seed: 1, PublicPerMinute: limit})
	server.OpenLedger(t, v.URL)
	flag, id := v.streamFlagAndMarket()
	args := []string{"--shared-url=rediss://oddsgraph:PASSWORD@127.0.0.1:" + port, "--shared-timeout=1s", flag}
	trustEnv := []string{"SSL_CERT_FILE=" + authority}
	a, b := startIn(t, trustEnv, v, args...).waitConnected(t), startIn(t, trustEnv, v, args...).waitConnected(t)

	query := fmt.Sprintf(`{ markets(marketIds: [%s]) { id question } }`, quoted(v.markets(3)))
	if one, other := a.must(t, query), b.must(t, query); one != other {
		t.Errorf("the replicas answered %s and %s, want equal answers", one, other)
	}
	if n := v.calls("market-details"); n != 1 {
		t.Errorf("the venue received %d calls for the markets, want 1", n)
	}
	events := []func() int64{a.follow(t, id), b.follow(t, id)}
	if err := v.demo.SetStatus(id, "CLOSED"); err != nil {
		t.Fatal(err)
	}
	for _, n := range events {
		eventually(t, "both replicas receive the stream", func() bool { return n() > 1 })
	}
	a.flush(t)
	if err := v.faults.Set([]faults.Fault{{Path: "/api/exchange/market-search", Kind: faults.Status, Status: http.StatusTooManyRequests, RetryAfter: "60", Count: 1}}); err != nil {
		t.Fatal(err)
	}
	_, _ = a.ask(`{ searchMarkets(query: "refused", first: 1) { nodes { id } } }`)
	eventually(t, "the other replica has holdUntil", func() bool {
		_, _ = b.ask(fmt.Sprintf(`{ searchMarkets(query: "%d", first: 1) { nodes { id } } }`, time.Now().UnixNano()))
		return b.status(t).Limit.HoldUntil != nil
	})
	for _, command := range []string{"tick", "ask", "end", "get", "claim", "put"} {
		if a.metric(t, "oddsgraph_shared_calls_total", fmt.Sprintf(`command="%s",result="ok"`, command)) == 0 {
			t.Errorf("no %s call to Redis has succeeded, want at least one", command)
		}
	}
	eventually(t, "the flush is in Redis", func() bool { return strings.Contains(server.CLI(t, "KEYS", "og:*:flushes"), "flushes") })
	if denied := server.CLI(t, "ACL", "LOG"); denied != "" {
		t.Errorf("Redis denied commands of a replica:\n%s", denied)
	}
	if clients := server.CLI(t, "CLIENT", "LIST"); strings.Count(clients, "user=oddsgraph") != 2 {
		t.Errorf("want a connection of each replica, which makes two connections of the user oddsgraph to Redis, got:\n%s", clients)
	}

	stranger := start(t, v, args...)
	eventually(t, "the replica that does not trust the certificate reports this reason", func() bool {
		s := stranger.status(t)
		return !s.Connected && s.LastError != nil && *s.LastError == "the certificate of Redis is not trusted"
	})
	for _, r := range []*replica{a, b, stranger} {
		if text := r.log.String(); strings.Contains(text, "PASSWORD") {
			t.Errorf("the log contains the password:\n%s", text)
		}
	}
}
