package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/bench/subscribers"
)

// broadcastServer is the name of the program broadcast, which sends the same bytes to all WebSockets without GraphQL.
const broadcastServer = "broadcast"

const subscription = `subscription { priceChanged(tokenIds: [%q]) { reason token { tokenId } price { price basis timestamp freshness { source stale } } previousPrice } }`

// crowd has the measurements of each server with many subscribers, either of one token or of lists of tokens.
type crowd struct {
	subscribers int
	lists       bool
	servers     []*serverDeliveries
}

// serverDeliveries has the rounds of one server.
type serverDeliveries struct {
	name   string
	rounds []delivery
}

// delivery is one round. deliveries is the number of messages that arrived. share is deliveries divided by the number of expected
// messages. load is the server's CPU time divided by the duration of the round. cpu is the CPU time of the server per message.
// clientCPU is the CPU time of the subscribers per message. Both are in nanoseconds. allocs is the number of allocations per
// message. p50 and p99 are percentiles of the nanoseconds from the cause of an event to the arrival of its message. resident is the
// server's resident memory in bytes.
type delivery struct{ deliveries, share, load, cpu, allocs, clientCPU, p50, p99, resident float64 }

// audience is a server and the separate process of its subscribers.
type audience struct {
	*serverDeliveries
	server  *server
	cmd     *exec.Cmd
	orders  io.WriteCloser
	reports *json.Decoder
	said    bytes.Buffer
}

// gather starts n subscribers and waits until they are connected to a server.
func gather(ctx context.Context, program string, s *server, n int, document string, tokens ...string) (*audience, error) {
	a := &audience{serverDeliveries: &serverDeliveries{name: s.name}, server: s}
	a.cmd = exec.CommandContext(ctx, program, "-address="+s.address, "-n="+strconv.Itoa(n), "-document="+document, "-tokens="+strings.Join(tokens, ","))
	a.cmd.Env, a.cmd.Stderr = environment(), &a.said
	var err error
	if a.orders, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	reports, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	a.reports = json.NewDecoder(reports)
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = a.read()
	return a, err
}

func (a *audience) read() (r subscribers.Report, err error) {
	if err = a.reports.Decode(&r); err != nil {
		err = errors.Join(fmt.Errorf("the subscribers of %s: %w", a.name, err), a.stop())
	}
	return r, err
}

// stop ends the subscribers. If their process fails, the error contains its error output. A second call does nothing.
func (a *audience) stop() error {
	if a.orders == nil {
		return nil
	}
	_ = a.orders.Close()
	a.orders = nil
	if err := a.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, a.said.Bytes())
	}
	return nil
}

// deliver has the subscribers cause the events of an order, and records the measurements as a round. It returns one of the messages
// that arrived.
func (a *audience) deliver(ctx context.Context, o subscribers.Order) (string, error) {
	before, err := a.server.usage(ctx)
	if err != nil {
		return "", err
	}
	start := time.Now()
	if err := json.NewEncoder(a.orders).Encode(o); err != nil {
		return "", errors.Join(err, a.stop())
	}
	r, err := a.read()
	if err != nil {
		return "", err
	}
	elapsed := time.Since(start)
	after, err := a.server.usage(ctx)
	if err != nil {
		return "", err
	}
	if r.Deliveries == 0 {
		return "", fmt.Errorf("nothing arrived from %s", a.name)
	}
	each := float64(r.Deliveries)
	a.rounds = append(a.rounds, delivery{
		deliveries: each,
		share:      each / float64(r.Expected),
		load:       float64(after.CPU-before.CPU) / float64(elapsed),
		cpu:        float64(after.CPU-before.CPU) / each,
		allocs:     float64(after.Allocs-before.Allocs) / each,
		clientCPU:  float64(r.CPU) / each,
		p50:        float64(r.P50),
		p99:        float64(r.P99),
		resident:   float64(a.server.memory()),
	})
	return r.Last, nil
}

// statedPrice matches the price in a message.
var statedPrice = regexp.MustCompile(`"price":\{"price":"[^"]*"`)

// deliveryLab has the venue, the servers oddsgraph (subject) and broadcast (bare), and the path of the program of their
// subscribers.
type deliveryLab struct {
	venue         venue
	subject, bare *server
	program       string
	stops         []func()
}

func (t *deliveryLab) stop() {
	for _, stop := range slices.Backward(t.stops) {
		stop()
	}
}

// newDeliveryLab starts a venue, oddsgraph in front of it, and the program broadcast. The caller must stop the deliveryLab, even
// after an error.
func newDeliveryLab(ctx context.Context, b *builds, o options) (*deliveryLab, error) {
	t := &deliveryLab{}
	program, err := b.oddsgraph(ctx)
	if err != nil {
		return t, err
	}
	process, err := startVenue(ctx, b, program, 0)
	if err != nil {
		return t, err
	}
	t.stops = append(t.stops, process.stop)
	t.venue = venue{process.url()}
	flags := slices.Concat(unlimited, []string{"--max-connections=20000", "--client-executions=10000", "--venue-url=" + process.url(), "--stream-url=ws://" + process.address + "/ws"}, o.flags)
	if t.subject, err = b.start(ctx, graphServer, program, "--listen", flags...); err != nil {
		return t, err
	}
	t.stops = append(t.stops, t.subject.stop)
	if program, err = b.broadcast(ctx); err != nil {
		return t, err
	}
	if t.bare, err = b.start(ctx, broadcastServer, program, "-listen"); err != nil {
		return t, err
	}
	t.stops = append(t.stops, t.bare.stop)
	t.program, err = b.subscribers(ctx)
	return t, err
}

// audiences has n clients subscribe to a document at oddsgraph, and n clients listen to the program broadcast.
func (t *deliveryLab) audiences(ctx context.Context, n int, document string, tokens ...string) (ours, theirs *audience, err error) {
	if ours, err = gather(ctx, t.program, t.subject, n, document, tokens...); err != nil {
		return nil, nil, err
	}
	if theirs, err = gather(ctx, t.program, t.bare, n, ""); err != nil {
		return nil, nil, errors.Join(err, ours.stop())
	}
	return ours, theirs, nil
}

// subscribe has n clients subscribe to a token at oddsgraph, and n clients listen to the program broadcast. In each round the
// token's price moves several times. Afterwards broadcast sends messages with the same prices.
func subscribe(ctx context.Context, b *builds, o options, n int) (*crowd, error) {
	t, err := newDeliveryLab(ctx, b, o)
	defer t.stop()
	if err != nil {
		return nil, err
	}
	token, moves, err := t.venue.risingToken(ctx, o.events)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := t.audiences(ctx, n, fmt.Sprintf(subscription, token))
	if err != nil {
		return nil, err
	}
	defer theirs.stop()
	defer ours.stop()
	for range o.rounds {
		message, err := ours.deliver(ctx, moves)
		if err != nil {
			return nil, err
		}
		same := subscribers.Order{URL: t.bare.url() + "/broadcast", Prices: moves.Prices, Every: moves.Every}
		same.Bodies = copiesOf(message, moves.Prices)
		if _, err := theirs.deliver(ctx, same); err != nil {
			return nil, err
		}
	}
	return &crowd{subscribers: n, servers: []*serverDeliveries{theirs.serverDeliveries, ours.serverDeliveries}}, errors.Join(ours.stop(), theirs.stop())
}

// risingToken returns a token with enough prices above its present price, and an order that moves the token up by one tick per
// event.
func (v venue) risingToken(ctx context.Context, events int) (token string, o subscribers.Order, err error) {
	l, err := v.list(ctx, 1)
	if err != nil {
		return "", o, err
	}
	o = subscribers.Order{URL: v.url + "/__control/price", Every: time.Second / changesPerSecond}
	for _, m := range l.open {
		tick, err := fixed(m.TickSize.String())
		if err != nil {
			return "", o, err
		}
		now, err := fixed(m.Outcomes[0].Price.String())
		if err != nil {
			return "", o, err
		}
		// Every round repeats these prices. The first price differs from the last one, so that the first event of a round is a
		// change.
		if first := now + tick; events*tick+first < 10_000 {
			token = m.Outcomes[0].TokenID
			for i := range events {
				o.Prices = append(o.Prices, first+i*tick)
				o.Bodies = append(o.Bodies, string(setPrice(token, first+i*tick)))
			}
			return token, o, nil
		}
	}
	return "", o, errors.New("no token has enough prices above its present price")
}

// crowdsMarkdown returns a table of the medians.
func crowdsMarkdown(crowds []*crowd) string {
	lines := [][]string{{"subscribers", "server", "CPU", "CPU µs", "allocs", "p50 ms", "p99 ms", "arrived", "RSS MB", "× broadcast's CPU", "× its p99", "client µs"}}
	for _, c := range crowds {
		bare := c.servers[0]
		for _, s := range c.servers {
			lines = append(lines, []string{
				c.title(), s.name,
				fmt.Sprintf("%.0f%%", 100*s.median(func(d delivery) float64 { return d.load })),
				fmt.Sprintf("%.2f", s.median(func(d delivery) float64 { return d.cpu })/1e3),
				fmt.Sprintf("%.2f", s.median(func(d delivery) float64 { return d.allocs })),
				fmt.Sprintf("%.1f", s.median(func(d delivery) float64 { return d.p50 })/1e6),
				fmt.Sprintf("%.1f", s.median(func(d delivery) float64 { return d.p99 })/1e6),
				fmt.Sprintf("%.1f%%", 100*s.median(func(d delivery) float64 { return d.share })),
				fmt.Sprintf("%.0f", s.median(func(d delivery) float64 { return d.resident })/(1<<20)),
				fmt.Sprintf("%.2f", s.ratio(bare, func(d delivery) float64 { return d.cpu })),
				fmt.Sprintf("%.2f", s.ratio(bare, func(d delivery) float64 { return d.p99 })),
				fmt.Sprintf("%.2f", s.median(func(d delivery) float64 { return d.clientCPU })/1e3),
			})
		}
	}
	return markdown(lines, 2)
}

func (s *serverDeliveries) median(of func(delivery) float64) float64 {
	values := make([]float64, len(s.rounds))
	for i, d := range s.rounds {
		values[i] = of(d)
	}
	return median(values)
}

// ratio divides a figure of each round by the figure of another server in the same round, and returns the median of the results.
func (s *serverDeliveries) ratio(to *serverDeliveries, of func(delivery) float64) float64 {
	values := make([]float64, len(s.rounds))
	for i, d := range s.rounds {
		values[i] = of(d) / max(of(to.rounds[i]), 1)
	}
	return median(values)
}
