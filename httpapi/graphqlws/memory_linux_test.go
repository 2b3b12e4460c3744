package graphqlws_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"oddsgraph/httpapi/graphqlws"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/feed/follow"
)

// gcPercent is that of all servers that are compared.
const gcPercent = 400

func init() { runChild = measured }

// measured is the main function of a process of its own: a server, or the clients of one, whose memory is not to count. It
// says when it is ready and then does what it is told, line by line, until there is no more.
func measured(command string) int {
	name, arg, _ := strings.Cut(command, " ")
	var do func(command string, n int) int
	switch name {
	case "clients":
		do = clients(strings.Fields(arg))
	default:
		debug.SetGCPercent(gcPercent)
		do = server(name)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, n, _ := strings.Cut(lines.Text(), " ")
		count, _ := strconv.Atoi(n)
		fmt.Println(do(verb, count))
	}
	return 0
}

// server serves sockets of a kind and says its address.
func server(kind string) func(verb string, n int) int {
	var handler http.Handler
	publish := func() {}
	switch kind {
	case "bare": // a socket that is only read
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{graphqlws.Subprotocol}})
			if err != nil {
				return
			}
			go func() {
				for err == nil {
					_, _, err = conn.Read(context.Background())
				}
			}()
		})
	case "gqlgen":
		g := newGqlgen(pingEvery)
		handler, publish = g, g.SendNextSubscriptionMessage
	case "oddsgraph":
		o := newOperator()
		t := new(testing.B)
		handler = graphqlws.New(graphqlws.Config{Operator: o, Ping: pingEvery, Quota: quota.New(quota.Limits{Connections: 1e6, Operations: 1e6})})
		payload := price(300)
		publish = func() { o.publish(t, "subscription { name }", payload, follow.Append) }
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = http.Serve(l, handler) }()
	fmt.Println(l.Addr())
	return func(verb string, n int) int {
		switch verb {
		case "publish":
			for range n {
				publish()
			}
		case "rss":
			return rss()
		}
		return 0
	}
}

// rss returns the resident memory of this process in bytes.
func rss() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		panic(err)
	}
	return kb << 10
}

// clients connects as many sockets with as many subscriptions each to an address, and answers pings.
func clients(args []string) func(verb string, n int) int {
	address := args[0]
	sockets, _ := strconv.Atoi(args[1])
	each, _ := strconv.Atoi(args[2])
	var acks, pings, events atomic.Int64
	free := make(chan struct{}, 32)
	var connected sync.WaitGroup
	for range sockets {
		free <- struct{}{}
		connected.Go(func() {
			defer func() { <-free }()
			conn, in, err := handshake(address)
			if err != nil {
				panic(err)
			}
			_, _ = conn.Write(frame(opText, initialise))
			for i := range each {
				_, _ = conn.Write(frame(opText, subscribing(strconv.Itoa(i), "subscription { name }")))
			}
			go func() {
				buf := make([]byte, 1<<10)
				for {
					_, payload, err := readFrame(in, buf)
					switch {
					case err != nil:
						return
					case strings.Contains(string(payload[:min(60, len(payload))]), `"next"`):
						events.Add(1)
					case string(payload) == pinging:
						pings.Add(1)
						_, _ = conn.Write(frame(opText, `{"type":"pong"}`))
					default:
						acks.Add(1)
					}
				}
			}()
		})
	}
	connected.Wait()
	fmt.Println("connected")
	return func(verb string, _ int) int {
		return int(map[string]*atomic.Int64{"acks": &acks, "pings": &pings, "events": &events}[verb].Load())
	}
}

// child is another process that is told what to do.
type child struct {
	t   testing.TB
	in  io.WriteCloser
	out *bufio.Scanner
	// said is the first line that it said.
	said string
}

func startChild(t testing.TB, command string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+command)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	c := &child{t: t, in: in, out: bufio.NewScanner(out)}
	c.said = c.line()
	return c
}

func (c *child) line() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatal("another process has ended:", c.out.Err())
	}
	return c.out.Text()
}

// ask tells the process what to do and returns its answer.
func (c *child) ask(command string) int {
	c.t.Helper()
	if _, err := io.WriteString(c.in, command+"\n"); err != nil {
		c.t.Fatal(err)
	}
	n, err := strconv.Atoi(c.line())
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// memory returns the resident bytes for each subscription, pinged and idle, and after a burst of events.
func memory(t testing.TB, kind string, sockets, each int) (idle, burst float64) {
	server := startChild(t, kind)
	before := server.ask("rss")
	clients := startChild(t, fmt.Sprintf("clients %s %d %d", server.said, sockets, each))
	if kind != "bare" {
		await(t, "introductions", func() bool { return clients.ask("acks") == sockets })
		await(t, "pings", func() bool { return clients.ask("pings") >= sockets*9/10 })
	}
	perSubscription := func() float64 { return float64(server.ask("rss")-before) / float64(sockets*each) }
	idle = perSubscription()
	switch kind {
	case "oddsgraph":
		const events = 10
		server.ask(fmt.Sprint("publish ", events))
		await(t, "events", func() bool { return clients.ask("events") == events*sockets*each })
	case "gqlgen":
		server.ask(fmt.Sprint("publish ", 10*sockets*each))
	}
	return idle, perSubscription()
}

// BenchmarkMemory measures the resident memory of 10,000 subscriptions beside bare sockets and gqlgen's transport.
func BenchmarkMemory(b *testing.B) {
	for _, test := range []struct {
		kind          string
		sockets, each int
	}{
		{"bare", 10_000, 1}, {"oddsgraph", 10_000, 1}, {"oddsgraph", 1000, 10}, {"gqlgen", 10_000, 1}, {"gqlgen", 1000, 10},
	} {
		b.Run(fmt.Sprintf("%s/%dx%d", test.kind, test.sockets, test.each), func(b *testing.B) {
			for b.Loop() {
				idle, burst := memory(b, test.kind, test.sockets, test.each)
				b.ReportMetric(idle/1024, "idle-KiB/subscription")
				b.ReportMetric(burst/1024, "burst-KiB/subscription")
			}
		})
	}
}
