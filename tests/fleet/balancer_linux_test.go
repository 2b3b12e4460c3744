package fleet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"oddsgraph/internal/demo"
	"oddsgraph/tests/tool"
)

// deployment runs the services of deploy/compose/replicas.yaml without containers: three replicas, HAProxy, and a Redis server in
// place of Valkey.
type deployment struct {
	venue    *venue
	replicas []*replica
	redis    *os.Process
	url      string
	log      *logs // log of HAProxy
}

// replicaAddresses are the addresses of the replicas in haproxy.cfg.
var replicaAddresses = []string{"oddsgraph-1:8080", "oddsgraph-2:8080", "oddsgraph-3:8080"}

func startDeployment(t *testing.T, args ...string) *deployment {
	t.Helper()
	root, err := tool.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	haproxy := tool.Require(t, "haproxy")
	compose := filepath.Join(root, "deploy", "compose")
	b := &deployment{venue: openVenue(t, demo.Config{Markets: 50, Seed: 1}), log: &logs{ready: make(chan [2]string, 1)}}
	redis, flags := startValkey(t, compose, b.venue)
	b.redis, args = redis, append(flags, args...)
	args = append(args, "--stream-url=ws"+strings.TrimPrefix(b.venue.URL, "http")+demo.StreamPath,
		"--trusted-proxies=127.0.0.1", "--shared-replicas=4", "--shared-timeout=1s", "--drain-delay=5m")
	text, err := os.ReadFile(filepath.Join(compose, "haproxy.cfg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range replicaAddresses {
		r := start(t, b.venue, args...).waitConnected(t)
		// HAProxy takes a replica out if its first check fails.
		eventually(t, "the replica is ready", func() bool { return r.get(t, "/readyz") == "ready\n" })
		b.replicas = append(b.replicas, r)
		text = replace(t, text, " "+address, " "+strings.TrimPrefix(r.url, "http://"))
	}
	text = replace(t, text, "timeout check 2s", "timeout check 1m") // the machine may be busy
	b.start(t, haproxy, replace(t, text, "bind :8080", "bind fd@3"))
	return b
}

// replace replaces a part that occurs exactly once in a text.
func replace(t *testing.T, text []byte, part, by string) []byte {
	t.Helper()
	if n := bytes.Count(text, []byte(part)); n != 1 {
		t.Fatalf("%q occurs %d times, want once, in\n%s", part, n, text)
	}
	return bytes.Replace(text, []byte(part), []byte(by), 1)
}

// startValkey creates secrets and starts a Redis server. The server has the settings and users of the Valkey server in the folder
// compose. startValkey returns the process of the server and the flags of a replica.
func startValkey(t *testing.T, compose string, v *venue) (*os.Process, []string) {
	t.Helper()
	tool.Require(t, "openssl")
	dir, err := os.MkdirTemp("", "valkey") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if out, err := exec.Command("sh", filepath.Join(compose, "secrets.sh"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	settings, socket := filepath.Join(dir, "oddsgraph.env"), filepath.Join(dir, "valkey.sock")
	text, err := os.ReadFile(settings)
	if err == nil {
		text = replace(t, replace(t, text, "=redis:", "=unix:"), "@valkey:6379", "@"+socket)
		err = os.WriteFile(settings, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(tool.Require(t, "redis-server"), filepath.Join(compose, "valkey.conf"),
		"--port", "0", "--unixsocket", socket, "--dir", dir, "--aclfile", filepath.Join(dir, "valkey.acl"))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	password, _, _ := strings.Cut(strings.TrimPrefix(string(text), "ODDSGRAPH_SHARED_URL=unix://oddsgraph:"), "@")
	cli := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(filepath.Dir(server.Path), "redis-cli"), append([]string{"-s", socket, "--user", "oddsgraph", "--raw"}, args...)...)
		cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+password)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	eventually(t, "the server answers", func() bool { out, err := cli("PING"); return err == nil && out == "PONG" })
	if err := tool.OpenLedger(v.URL, cli); err != nil {
		t.Fatal(err)
	}
	return server.Process, []string{"--config=" + settings, "--shared-secret-file=" + filepath.Join(dir, "shared-secret")}
}

// start starts HAProxy with a configuration, on a free port.
func (b *deployment) start(t *testing.T, haproxy string, text []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inherited, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	cmd := exec.Command(haproxy, "-db", "-f", file)
	cmd.ExtraFiles = []*os.File{inherited} // file descriptor 3 of HAProxy
	cmd.Stdout, cmd.Stderr = b.log, b.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the log of HAProxy:\n%s", b.log)
		}
	})
	b.url = "http://" + l.Addr().String()
	eventually(t, "a replica answers through HAProxy", func() bool { return b.query("{ __typename }") == nil })
}

// query executes a query on a new connection.
func (b *deployment) query(query string) error {
	alone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	resp, err := alone.Do(post(context.Background(), b.url, query))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"errors"`))) {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return err
}

// follower is a subscription of a client. The channel prices delivers the price of each event. The channel is closed when
// the connection ends or the subscription is refused.
type follower struct {
	prices chan string
}

// wait returns the next price. It returns false if the subscription has ended.
func (f *follower) wait(t *testing.T) (price string, alive bool) {
	t.Helper()
	select {
	case price, alive = <-f.prices:
		return price, alive
	case <-time.After(time.Minute):
		t.Fatal("no event arrived within a minute")
		return "", false
	}
}

// follow calls read in a loop, and delivers the price in each text that read returns. It stops when read fails, or when a text has
// the error RATE_LIMITED.
func follow(read func() (string, error)) *follower {
	f := &follower{prices: make(chan string, 100)}
	go func() {
		defer close(f.prices)
		for {
			text, err := read()
			if err != nil {
				return
			}
			if _, price, ok := strings.Cut(text, `"price":{"price":"`); ok {
				price, _, _ = strings.Cut(price, `"`)
				f.prices <- price
			} else if strings.Contains(text, "RATE_LIMITED") {
				return
			}
		}
	}()
	return f
}

// subscription returns a subscription to the price of a token.
func subscription(token string) string {
	return fmt.Sprintf(`subscription { priceChanged(tokenIds: [%q]) { price { price } } }`, token)
}

// socket subscribes over a WebSocket.
func (b *deployment) socket(t *testing.T, token string) *follower {
	t.Helper()
	ctx := t.Context()
	conn, _, err := websocket.Dial(ctx, b.url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	payload, err := json.Marshal(map[string]any{"id": "1", "type": "subscribe", "payload": map[string]string{"query": subscription(token)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{`{"type":"connection_init"}`, string(payload)} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	return follow(func() (string, error) {
		_, message, err := conn.Read(ctx)
		return string(message), err
	})
}

// stream subscribes over an event stream, as a client with the IP address localIP.
func (b *deployment) stream(t *testing.T, token, localIP string, header ...string) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := post(ctx, b.url, subscription(token), append(header, "Accept", "text/event-stream")...)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(localIP)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		transport.CloseIdleConnections()
	})
	lines := bufio.NewReader(resp.Body)
	return follow(func() (string, error) { return lines.ReadString('\n') })
}

// clientCount returns how many WebSockets and event streams a replica has.
func (r *replica) clientCount(t *testing.T) int {
	t.Helper()
	return int(r.metric(t, "oddsgraph_websockets", "") + r.metric(t, "oddsgraph_event_streams", ""))
}

// setPrice changes a price and waits until each subscription has the price or has ended. setPrice returns the subscriptions that
// have the price, and the subscriptions that have ended.
func (b *deployment) setPrice(t *testing.T, token string, to demo.Price, want string, open []*follower) (alive, ended []*follower) {
	t.Helper()
	if err := b.venue.demo.SetPrice(token, to); err != nil {
		t.Fatal(err)
	}
	for _, f := range open {
		got, live := f.wait(t)
		for live && got != want {
			got, live = f.wait(t)
		}
		if live {
			alive = append(alive, f)
		} else {
			ended = append(ended, f)
		}
	}
	return alive, ended
}

// TestBalancer checks that clients can query and subscribe through the balancer while one replica is killed and another one stops.
func TestBalancer(t *testing.T) {
	t.Parallel()
	b := startDeployment(t)
	token := b.venue.demo.Tokens()[0].TokenID
	var open []*follower
	for range 6 {
		open = append(open, b.socket(t, token), b.stream(t, token, "127.0.0.1"))
	}
	first := ""
	for _, f := range open {
		first, _ = f.wait(t)
	}
	if _, ended := b.setPrice(t, token, 4200, "0.42", open); len(ended) > 0 || first == "0.42" {
		t.Fatalf("%d of %d subscriptions have ended, and the first price was %s; want 0 ended, and a first price other than 0.42", len(ended), len(open), first)
	}
	for i, r := range b.replicas {
		if r.clientCount(t) == 0 {
			t.Errorf("replica %d has no clients", i+1)
		}
	}

	wantEnded := b.replicas[1].clientCount(t)
	b.replicas[1].kill()
	for range 50 {
		if err := b.query(fmt.Sprintf(`{ tokens(tokenIds: [%q]) { price { price } } }`, token)); err != nil {
			t.Errorf("a query after a replica was killed: %v", err)
		}
	}
	alive, ended := b.setPrice(t, token, 4300, "0.43", open)
	if len(ended) != wantEnded || len(alive) == 0 {
		t.Errorf("%d subscriptions ended and %d continued; want exactly the %d of the killed replica to end", len(ended), len(alive), wantEnded)
	}
	open = alive
	for range ended {
		f := b.stream(t, token, "127.0.0.1")
		if got, live := f.wait(t); !live || got != "0.43" {
			t.Errorf("a client that connects again got the price %q (still subscribed: %t), want 0.43", got, live)
		}
	}

	stopping := b.replicas[2]
	signal(t, stopping.cmd.Process, syscall.SIGTERM)
	eventually(t, "the balancer notices that a replica stops", func() bool {
		if err := b.query("{ __typename }"); err != nil {
			t.Errorf("a query while a replica stops: %v", err)
		}
		return strings.Contains(b.log.String(), "Server replicas/oddsgraph-3 is DOWN")
	})
	select {
	case <-stopping.ended:
		t.Error("the replica ended before the balancer noticed that the replica stops")
	default:
	}
	if _, ended := b.setPrice(t, token, 4400, "0.44", open); len(ended) > 0 {
		t.Errorf("%d subscriptions ended while the stopping replica still runs, want none", len(ended))
	}
}

// TestBalancerSendsClientAddresses checks that replicas limit each client behind the balancer separately, and that a client cannot
// pretend to be another client.
func TestBalancerSendsClientAddresses(t *testing.T) {
	t.Parallel()
	b := startDeployment(t, "--client-connections=1")
	token := b.venue.demo.Tokens()[0].TokenID
	accepted := 0
	for i := range 12 {
		var header []string
		if i%2 == 1 {
			header = []string{"X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i)}
		}
		if _, ok := b.stream(t, token, "127.0.0.2", header...).wait(t); ok {
			accepted++
		}
	}
	if accepted < 1 || accepted > len(b.replicas) {
		t.Errorf("a client got %d event streams, want 1 to %d, because each replica allows one", accepted, len(b.replicas))
	}
	if _, ok := b.stream(t, token, "127.0.0.3").wait(t); !ok {
		t.Error("another client gets no event stream")
	}
}
