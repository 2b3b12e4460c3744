package kalshi

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
)

// start is the time of the first frame.
var start = time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)

// rig contains a codec and its clock. rig is also the codec's observer.
type rig struct {
	t *testing.T
	*codec
	now   time.Time
	notes []string
	rid   int
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, now: start}
	r.codec = newCodec(r, func() time.Time { return r.now })
	r.epoch = "E"
	return r
}

// Frame implements stream.Observer.
func (r *rig) Frame(kind string) {
	if kind == "unknown" {
		r.notes = append(r.notes, "unknown frame")
	}
}

// Drift implements stream.Observer.
func (r *rig) Drift(what string) { r.notes = append(r.notes, what) }

// Reconnect implements stream.Observer.
func (r *rig) Reconnect(string) {}

// request encodes a request with the next request id, and returns the encoded commands.
func (r *rig) request(verb stream.Verb, topics ...messages.Topic) (commands []string) {
	r.rid++
	for _, b := range r.Encode(&stream.Request{Verb: verb, Rid: fmt.Sprint("r", r.rid), Topics: topics}) {
		commands = append(commands, string(b))
	}
	return commands
}

// frame decodes a frame. A frame without events shows that the venue is alive.
func (r *rig) frame(text string) []stream.Event {
	if events := r.Decode([]byte(text), r.now); len(events) > 0 {
		return events
	}
	return []stream.Event{{Kind: stream.EventLife}}
}

func book(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
}

// describe returns an event as text. The text of a message may have several lines.
func describe(e stream.Event) string {
	switch e.Kind {
	case stream.EventLife:
		return "life"
	case stream.EventGarbage:
		return "garbage"
	case stream.EventAck:
		return "ack " + e.Rid
	case stream.EventError:
		return "error " + e.Rid + " " + e.Code
	case stream.EventBad:
		return "bad " + string(e.Topic.Channel) + " " + e.Topic.ID
	}
	m := *e.Message
	out := fmt.Sprintf("message %s %s %s:%d", m.Topic.Channel, m.Topic.ID, m.Epoch, m.Seq)
	if !m.Time.IsZero() {
		out += " at " + m.Time.Format(time.RFC3339Nano)
	}
	for _, part := range []any{m.Price, m.Spread, m.Book, m.Changes, m.Trades, m.Market} {
		if b, _ := json.Marshal(part); string(b) != "null" {
			out += "\n    " + string(b)
		}
	}
	return out
}

// TestSession replays the requests and frames of testdata/session.txt. It compares the resulting commands and events with
// testdata/session.golden.
func TestSession(t *testing.T) {
	script, err := os.ReadFile("testdata/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string]stream.Verb{"subscribe": stream.VerbSubscribe, "unsubscribe": stream.VerbUnsubscribe, "resync": stream.VerbResync}
	r, g := newRig(t), &golden{t: t, name: "session.golden"}
	for line := range strings.Lines(string(script)) {
		line = strings.TrimSpace(line)
		g.text.WriteString(line + "\n")
		if frame, ok := strings.CutPrefix(line, "< "); ok {
			r.notes = nil
			for _, e := range r.frame(frame) {
				g.text.WriteString("  " + describe(e) + "\n")
			}
			for _, what := range r.notes {
				g.text.WriteString("  note: " + what + "\n")
			}
		} else if words := strings.Fields(line); words[0] != "#" {
			var topics []messages.Topic
			for _, id := range words[2:] {
				topics = append(topics, messages.Topic{Channel: messages.Channel(words[1]), ID: id})
			}
			for _, command := range r.request(verbs[words[0]], topics...) {
				g.text.WriteString("  > " + command + "\n")
			}
		}
	}
	g.compare()
}

// open subscribes to book topics, and passes a snapshot of each market to the codec. It returns the sequence number of the last
// snapshot.
func (r *rig) open(topics ...messages.Topic) (seq int) {
	r.t.Helper()
	r.request(stream.VerbSubscribe, topics...)
	r.frame(`{"id":1,"type":"subscribed","msg":{"channel":"orderbook_delta","sid":1}}`)
	var tickers []string
	for _, topic := range topics {
		if ticker, _, _ := parseToken(topic.ID); !slices.Contains(tickers, ticker) {
			tickers = append(tickers, ticker)
		}
	}
	for _, ticker := range tickers {
		seq++
		r.frame(snapshotFrame(seq, ticker))
	}
	return seq
}

func snapshotFrame(seq int, ticker string) string {
	return fmt.Sprintf(`{"type":"orderbook_snapshot","sid":1,"seq":%d,"msg":{"market_ticker":%q,"yes_dollars_fp":[["0.4000","10.00"]],"no_dollars_fp":[["0.6000","10.00"]]}}`, seq, ticker)
}

func deltaFrame(seq int, ticker, side, price, delta string) string {
	return fmt.Sprintf(`{"type":"orderbook_delta","sid":1,"seq":%d,"msg":{"market_ticker":%q,"price_dollars":%q,"delta_fp":%q,"side":%q}}`, seq, ticker, price, delta, side)
}

// kinds calls describe for each event and returns the first lines, sorted.
func kinds(events []stream.Event) (out []string) {
	for _, e := range events {
		line, _, _ := strings.Cut(describe(e), "\n")
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// TestGapOfSubscription checks that the codec marks all books of a subscription as lost if a message of the subscription is
// missing. The codec must request all these books with one command.
func TestGapOfSubscription(t *testing.T) {
	r := newRig(t)
	a, an, b := book("A:yes"), book("A:no"), book("B:yes")
	seq := r.open(a, an, b)
	got := kinds(r.frame(deltaFrame(seq+2, "A", "yes", "0.4000", "1.00")))
	if want := []string{"bad orderbook A:no", "bad orderbook A:yes", "bad orderbook B:yes"}; !slices.Equal(got, want) {
		t.Errorf("a gap causes the events %v; want %v", got, want)
	}
	if got := kinds(r.frame(deltaFrame(seq+3, "B", "yes", "0.4000", "1.00"))); !slices.Equal(got, []string{"life"}) {
		t.Errorf("a change before the snapshot causes the events %v; want life", got)
	}
	commands := r.request(stream.VerbResync, b)
	if want := []string{`{"id":2,"cmd":"update_subscription","params":{"sid":1,"market_tickers":["B","A"],"action":"get_snapshot"}}`}; !slices.Equal(commands, want) {
		t.Errorf("the first resync sends %v; want %v", commands, want)
	}
	for _, topic := range []messages.Topic{a, an, b} {
		if commands := r.request(stream.VerbResync, topic); commands != nil {
			t.Errorf("the resync of %s requests the book again: %v", topic.ID, commands)
		}
	}
	r.now = r.now.Add(snapshotWithin)
	if commands := r.request(stream.VerbResync, a); len(commands) != 1 {
		t.Errorf("the resync after a lost snapshot sends %v; want one command", commands)
	}
	got = kinds(r.frame(strings.Replace(snapshotFrame(seq+4, "A"), `"sid":1`, `"id":3,"sid":1`, 1)))
	if want := []string{"ack r6", "message orderbook A:no E:3", "message orderbook A:yes E:3"}; !slices.Equal(got, want) {
		t.Errorf("the snapshot causes the events %v; want %v", got, want)
	}
	if got := kinds(r.frame(deltaFrame(seq+5, "A", "yes", "0.4000", "1.00"))); len(got) != 2 || got[0] != "message orderbook A:no E:4" {
		t.Errorf("the change after the snapshot causes the events %v; want a message for each token", got)
	}
}

// TestAnswersAreNumbered checks that the codec counts the venue's response to a command as a message of the subscription, because
// the response has a sequence number. The codec must drop a frame with a repeated sequence number.
func TestAnswersAreNumbered(t *testing.T) {
	r := newRig(t)
	seq := r.open(book("A:yes"))
	r.request(stream.VerbSubscribe, book("B:yes"))
	r.frame(fmt.Sprintf(`{"id":2,"sid":1,"seq":%d,"type":"ok","msg":{"market_tickers":["A","B"]}}`, seq+1))
	r.frame(snapshotFrame(seq+2, "B"))
	if got := kinds(r.frame(deltaFrame(seq+3, "A", "yes", "0.4000", "1.00"))); !slices.Equal(got, []string{"message orderbook A:yes E:2"}) {
		t.Errorf("the change after an answer causes the events %v; want a message", got)
	}
	if got := kinds(r.frame(deltaFrame(seq+3, "A", "yes", "0.4000", "1.00"))); !slices.Equal(got, []string{"life"}) {
		t.Errorf("a repeated change causes the events %v; want life", got)
	}
}

// TestSignedChanges checks the total sizes that the codec publishes for both tokens after positive and negative changes.
func TestSignedChanges(t *testing.T) {
	r := newRig(t)
	seq := r.open(book("A:yes"), book("A:no"))
	for _, test := range []struct {
		side, price, delta string
		want               string
	}{
		{"yes", "0.4000", "2.50", `[{"Side":"BUY","Price":"0.4000","Size":"12.50"}] [{"Side":"SELL","Price":"0.6000","Size":"12.50"}]`},
		{"yes", "0.40", "-12.5", `[{"Side":"BUY","Price":"0.40","Size":"0.00"}] [{"Side":"SELL","Price":"0.60","Size":"0.00"}]`},
		{"yes", "0.4000", "7.00", `[{"Side":"BUY","Price":"0.4000","Size":"7.00"}] [{"Side":"SELL","Price":"0.6000","Size":"7.00"}]`},
		{"no", "0.6000", "-4.00", `[{"Side":"SELL","Price":"0.6000","Size":"6.00"}] [{"Side":"BUY","Price":"0.4000","Size":"6.00"}]`},
		{"no", "0.6110", "0.01", `[{"Side":"SELL","Price":"0.6110","Size":"0.01"}] [{"Side":"BUY","Price":"0.3890","Size":"0.01"}]`},
	} {
		seq++
		var got []string
		for _, e := range r.frame(deltaFrame(seq, "A", test.side, test.price, test.delta)) {
			b, _ := json.Marshal(e.Message.Changes)
			got = append(got, string(b))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("a change of %s at %s for %s publishes %v; want %s", test.delta, test.price, test.side, got, test.want)
		}
	}
	// A total size below 0 shows that the codec missed a change.
	if got := kinds(r.frame(deltaFrame(seq+1, "A", "yes", "0.4000", "-7.01"))); !slices.Equal(got, []string{"bad orderbook A:no", "bad orderbook A:yes"}) {
		t.Errorf("a negative total causes the events %v; want both books lost", got)
	}
}

// TestNumbersGoOn checks that the sequence numbers of a topic continue after a second subscription on the same socket. Caches
// compare all sequence numbers of one socket.
func TestNumbersGoOn(t *testing.T) {
	r := newRig(t)
	a := book("A:yes")
	seq := r.open(a, book("B:yes"))
	for range 5 {
		seq++
		r.frame(deltaFrame(seq, "A", "yes", "0.4000", "1.00"))
	}
	r.request(stream.VerbUnsubscribe, a)
	r.request(stream.VerbSubscribe, a)
	seq++
	if got := kinds(r.frame(snapshotFrame(seq, "A"))); !slices.Equal(got, []string{"message orderbook A:yes E:7"}) {
		t.Errorf("the snapshot of the second subscription causes the events %v; want number 7", got)
	}
}

// TestTopicEndsBeforeConfirmation checks topics that end before the venue confirms their subscription. After the confirmation, the
// codec must remove the market of such a topic. If no market is left, the codec must end the subscription.
func TestTopicEndsBeforeConfirmation(t *testing.T) {
	r := newRig(t)
	expect := func(when string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s sends %q; want %q", when, got, want)
		}
	}
	r.request(stream.VerbSubscribe, book("A:yes"), book("B:yes"))
	expect("the end of an unconfirmed topic", r.request(stream.VerbUnsubscribe, book("A:yes")))
	r.frame(`{"id":1,"type":"subscribed","msg":{"channel":"orderbook_delta","sid":1}}`)
	expect("the ping after the confirmation", r.request(stream.VerbPing),
		`{"id":2,"cmd":"update_subscription","params":{"sid":1,"market_tickers":["A"],"action":"delete_markets"}}`, `{"id":3,"cmd":"list_subscriptions"}`)
	r.request(stream.VerbSubscribe, book("C:yes"))
	expect("the end of an unconfirmed topic of an open subscription", r.request(stream.VerbUnsubscribe, book("C:yes")))
	r.frame(`{"id":4,"sid":1,"seq":1,"type":"ok","msg":{"market_tickers":["B","C"]}}`)
	expect("the end of the last topic", r.request(stream.VerbUnsubscribe, book("B:yes")), `{"id":5,"cmd":"unsubscribe","params":{"sids":[1]}}`)

	r.request(stream.VerbSubscribe, book("D:yes"))
	r.frame(`{"id":6,"type":"subscribed","msg":{"channel":"orderbook_delta","sid":2}}`)
	r.request(stream.VerbSubscribe, book("E:yes"))
	expect("the end of all confirmed topics", r.request(stream.VerbUnsubscribe, book("D:yes")),
		`{"id":8,"cmd":"update_subscription","params":{"sid":2,"market_tickers":["D"],"action":"delete_markets"}}`)
	r.frame(`{"id":7,"type":"error","msg":{"code":14,"msg":"Market Ticker required"}}`)
	expect("the ping after a refusal", r.request(stream.VerbPing), `{"id":9,"cmd":"unsubscribe","params":{"sids":[2]}}`, `{"id":10,"cmd":"list_subscriptions"}`)
}

// TestConfirmationAfterEnd checks a confirmation that arrives after the subscription has ended. The codec must treat it as an
// error. The next request must subscribe to the market again.
func TestConfirmationAfterEnd(t *testing.T) {
	r := newRig(t)
	r.open(book("A:yes"))
	r.request(stream.VerbSubscribe, book("B:yes"))
	if got := kinds(r.frame(`{"type":"error","sid":1,"msg":{"code":25,"msg":"overflow"}}`)); !slices.Equal(got, []string{"bad orderbook A:yes"}) {
		t.Errorf("the end of the subscription causes the events %v; want a lost book of A", got)
	}
	if got := kinds(r.frame(`{"id":2,"sid":1,"type":"ok","msg":{"market_tickers":["A","B"]}}`)); !slices.Equal(got, []string{"error r2 UNAVAILABLE"}) {
		t.Errorf("the confirmation causes the events %v; want an error", got)
	}
	want := []string{`{"id":3,"cmd":"subscribe","params":{"channels":["orderbook_delta"],"market_tickers":["B"],"use_yes_price":true}}`}
	if got := r.request(stream.VerbSubscribe, book("B:yes")); !slices.Equal(got, want) {
		t.Errorf("the next request sends %q; want %q", got, want)
	}
}

func TestSubjects(t *testing.T) {
	for _, test := range []struct {
		a, b messages.Topic
		same bool
	}{
		{book("A:yes"), book("A:no"), true},
		{book("A:yes"), book("B:yes"), false},
		{book("A:yes"), messages.Topic{Channel: messages.ChannelTrades, ID: "A:yes"}, false},
		{messages.Topic{Channel: messages.ChannelMarket, ID: "A"}, messages.Topic{Channel: messages.ChannelMarket, ID: "B"}, true},
	} {
		if same := subjectName(test.a) == subjectName(test.b); same != test.same {
			t.Errorf("%v and %v share a subject: got %t, want %t", test.a, test.b, same, test.same)
		}
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// golden collects text and compares it with a golden file.
type golden struct {
	t    *testing.T
	name string
	text strings.Builder
}

func (g *golden) compare() {
	g.t.Helper()
	file := filepath.Join("testdata", g.name)
	if *update {
		if err := os.WriteFile(file, []byte(g.text.String()), 0o644); err != nil {
			g.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		g.t.Fatal(err)
	}
	if got := g.text.String(); got != string(want) {
		g.t.Errorf("%s differs; run the test with -update and look at the difference\n%s", g.name, got)
	}
}

func TestTokens(t *testing.T) {
	for _, test := range []struct {
		id, ticker string
		side       side
		ok         bool
	}{
		{"KXRAINLIS-26NOV30-T2.5:yes", "KXRAINLIS-26NOV30-T2.5", yes, true},
		{"KXRAINLIS-26NOV30-T2.5:no", "KXRAINLIS-26NOV30-T2.5", no, true},
		{"KXRAINLIS-26NOV30-T2.5", "", yes, false},
		{":yes", "", yes, false},
		{"kxrain:no", "", yes, false},
		{"A&B:no", "", yes, false},
		{strings.Repeat("A", maxTicker+1) + ":no", "", yes, false},
	} {
		ticker, s, ok := parseToken(test.id)
		if ticker != test.ticker || s != test.side || ok != test.ok {
			t.Errorf("parseToken(%q) returns the ticker %q, the side %d and ok %t; want %q, %d and %t", test.id, ticker, s, ok, test.ticker, test.side, test.ok)
		}
		if ok && s.token(ticker) != test.id {
			t.Errorf("the token of the parsed id %s is %s", test.id, s.token(ticker))
		}
	}
}
