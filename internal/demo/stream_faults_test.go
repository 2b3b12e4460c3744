package demo

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// spoil sets the faults of the stream through the control endpoint.
func (s *testVenue) spoil(t testing.TB, faults ...Fault) {
	t.Helper()
	for i := range faults {
		faults[i].Path = StreamPath
	}
	document, err := json.Marshal(struct {
		Faults []Fault `json:"faults"`
	}{faults})
	if err != nil {
		t.Fatal(err)
	}
	if w := post(s.Venue, "faults", string(document)); w.Code != 200 {
		t.Fatalf("%s: %s", document, w.Body)
	}
}

// seqsOf returns the sequence numbers of those frames that have the given type and token.
func seqsOf(t testing.TB, frames []object, kind, id string) (seqs []uint64) {
	t.Helper()
	for _, f := range frames {
		if f["type"] == kind && f["tokenId"] == id {
			seqs = append(seqs, number(t, f, "seq"))
		}
	}
	return seqs
}

// TestFrameFaults checks that a fault affects only the frames that match the fault.
func TestFrameFaults(t *testing.T) {
	const update = "orderbook_update"
	for name, c := range map[string]struct {
		fault Fault
		want  []uint64 // sequence numbers of the updates that arrive when the price of token a moves four times
	}{
		"drop":            {Fault{Kind: FaultDrop, Count: 1}, []uint64{3, 4, 5}},
		"duplicate":       {Fault{Kind: FaultDuplicate, Count: 1}, []uint64{2, 2, 3, 4, 5}},
		"reorder":         {Fault{Kind: FaultReorder, Count: 1}, []uint64{3, 2, 4, 5}},
		"unknown type":    {Fault{Kind: FaultUnknownType, Count: 1}, []uint64{2, 3, 4, 5}},
		"skip":            {Fault{Kind: FaultSkip, Count: 1}, []uint64{3, 4, 5, 6}},
		"stall":           {Fault{Kind: FaultStall, Count: 1}, nil},
		"drop by type":    {Fault{Kind: FaultDrop, Frame: update}, nil},
		"another type":    {Fault{Kind: FaultDrop, Frame: "price_update"}, []uint64{2, 3, 4, 5}},
		"another topic":   {Fault{Kind: FaultDrop, TokenID: "b"}, []uint64{2, 3, 4, 5}},
		"slow snapshots":  {Fault{Kind: FaultSlowSnapshot, DelayMs: 1}, []uint64{2, 3, 4, 5}},
		"improbable drop": {Fault{Kind: FaultDrop, Probability: 1e-12}, []uint64{2, 3, 4, 5}},
		"lost tail":       {Fault{Kind: FaultLostTail, Count: 1}, []uint64{3, 4, 5}}, // the fault does not stop SetPrice
		"drop heartbeat":  {Fault{Kind: FaultDrop, Frame: "heartbeat"}, []uint64{2, 3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{Markets: 40, Control: true})
			tokens := openTokens(t, s.Venue, 2)
			a, b := tokens[0], tokens[1]
			spoiled, whole := s.dial(t), s.dial(t)
			spoiled.subscribe("orderbook", 0, a.id, b.id)
			spoiled.settle()
			switch c.fault.TokenID {
			case "b":
				c.fault.TokenID = b.id
			default:
				c.fault.TokenID = a.id
				if c.fault.Frame == "heartbeat" {
					c.fault.TokenID = ""
				}
			}
			s.spoil(t, c.fault)
			for range 4 {
				s.nudge(t, a)
				s.nudge(t, b)
			}
			if c.fault.Kind == FaultStall {
				s.spoil(t)
				s.nudge(t, a)
				spoiled.send("ping", "")
				go s.Close()
				if data, err := spoiled.bytes(); err == nil || websocket.CloseStatus(err) != websocket.StatusGoingAway {
					t.Errorf("after a stall: got frame %s and error %v, want no frame and close code 1001", data, err)
				}
				return
			}
			frames := spoiled.settle()
			if got := seqsOf(t, frames, update, a.id); !slices.Equal(got, c.want) {
				t.Errorf("got updates %v, want %v", got, c.want)
			}
			want := []uint64{2, 3, 4, 5}
			if c.fault.TokenID == b.id {
				want = nil
			}
			if got := seqsOf(t, frames, update, b.id); !slices.Equal(got, want) {
				t.Errorf("got updates %v of the other token, want %v", got, want)
			}
			strange := slices.IndexFunc(frames, func(f object) bool { return f["type"] == "weather_update" })
			if (strange >= 0) != (c.fault.Kind == FaultUnknownType) {
				t.Errorf("the index of a frame of an unknown type is %d (-1 means none)", strange)
			}
			// After the faults are removed, all frames arrive again.
			s.spoil(t)
			whole.subscribe("orderbook", 0, a.id)
			bk := &bookCopy{}
			bk.take(t, whole.take("orderbook_snapshot"))
			bk.check(t, s, a.id, 200, whole.epoch)
			s.nudge(t, a)
			if got := seqsOf(t, spoiled.settle(), update, a.id); len(got) != 1 || got[0] != bk.seq+1 {
				t.Errorf("after the fault: got updates %v, want only %d", got, bk.seq+1)
			}
		})
	}
}

// subscribeWithoutReading subscribes to the smallest demo account without reading the responses.
func (l *listener) subscribeWithoutReading(t testing.TB) {
	t.Helper()
	l.send("auth", `"address":"`+small+`","credentials":{"apiKey":"demo-3","secret":"demo","passphrase":"demo"}`)
	l.send("subscribe", `"channel":"user","address":"`+small+`"`)
}

func TestGarbage(t *testing.T) {
	s := open(t, Config{Control: true})
	tok := openTokens(t, s.Venue, 1)[0]
	l := s.dial(t)
	l.subscribe("prices", 0, tok.id)
	l.take("price_update")
	s.spoil(t, Fault{Kind: FaultGarbage, Count: 1}, Fault{Kind: FaultGarbage, Frame: "pong", Count: 1})
	s.nudge(t, tok)
	l.send("ping", "")
	for _, kind := range []string{"price_update", "pong"} {
		if data, err := l.bytes(); err != nil || json.Valid(data) || !strings.HasPrefix(string(data), `{"type":"`+kind[:3]) {
			t.Errorf("got frame %s and error %v, want half of a frame %s", data, err, kind)
		}
	}
	if frames := l.settle(); len(frames) > 0 {
		t.Errorf("after the spoiled frames: got %v, want nothing", frames)
	}
}

// TestLostTail checks that Step does not move a token after FaultLostTail has dropped a frame of the token. Heartbeats must contain
// the sequence number of the dropped frame. After the faults are removed, Step must move the token again.
func TestLostTail(t *testing.T) {
	s := open(t, Config{Markets: 1, Control: true})
	tok := s.listing.tradable[0]
	l := s.dial(t)
	l.subscribe("orderbook", 0, tok.id)
	l.take("orderbook_snapshot")
	s.spoil(t, Fault{Kind: FaultLostTail, Count: 1})
	for tok.bookSeq == 1 {
		s.Step()
	}
	for range 500 {
		s.Step()
	}
	if frames := l.settle(); len(frames) > 0 || tok.bookSeq != 2 {
		t.Errorf("after the lost frame: got seq %d and frames %v, want 2 and none", tok.bookSeq, frames)
	}
	beat := s.stream.all()[0].heartbeat()
	if !strings.Contains(string(beat.data), `"`+tok.id+`":2`) {
		t.Errorf("got heartbeat %s, want seq 2 of the token", beat.data)
	}
	l.send("resync", `"channel":"orderbook","tokenId":"`+tok.id+`"`)
	b := &bookCopy{}
	b.take(t, l.take("orderbook_snapshot"))
	b.check(t, s, tok.id, 200, l.epoch)
	s.spoil(t)
	for tok.bookSeq == 2 {
		s.Step()
	}
	if f := l.take("orderbook_update"); !b.take(t, f) {
		t.Errorf("got a gap before frame %v", f)
	}
}

// TestSlowSnapshot checks that updates arrive before an earlier snapshot that FaultSlowSnapshot delays.
func TestSlowSnapshot(t *testing.T) {
	s := open(t, Config{Control: true})
	tok := openTokens(t, s.Venue, 1)[0]
	l := s.dial(t)
	s.spoil(t, Fault{Kind: FaultSlowSnapshot, DelayMs: 600_000, Channel: "orderbook"})
	l.subscribe("prices", 0, tok.id)
	l.take("price_update")
	l.subscribe("orderbook", 0, tok.id)
	c := s.stream.all()[0]
	s.eventually(t, "the snapshot is delayed", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.delayed) > 0
	})
	s.nudge(t, tok)
	s.nudge(t, tok)
	c.mu.Lock()
	c.delayed[0].due = time.Now() // ends the delay of ten minutes
	c.mu.Unlock()
	c.signal()
	var updates []object
	for f := range l.all("orderbook_snapshot") {
		updates = append(updates, f)
	}
	b := &bookCopy{}
	b.take(t, updates[len(updates)-1])
	if got := seqsOf(t, updates, "orderbook_update", tok.id); b.seq != 1 || !slices.Equal(got, []uint64{2, 3}) {
		t.Fatalf("got a snapshot with seq %d and updates %v, want 1 and [2 3]", b.seq, got)
	}
	for _, f := range updates {
		if f["type"] == "orderbook_update" {
			b.take(t, f)
		}
	}
	b.check(t, s, tok.id, 200, l.epoch)
}

// TestCloseFaults checks the close codes, and that a fault for the frame hello closes a new connection before the hello.
func TestCloseFaults(t *testing.T) {
	s := open(t, Config{Markets: 40, Control: true})
	tok := openTokens(t, s.Venue, 1)[0]
	for _, code := range []int{0, CloseCredentials, CloseSlow, CloseShed, CloseAbuse, 1000, 1012, 3000, 4999} {
		l := s.dial(t)
		l.subscribe("prices", 0, tok.id)
		l.take("price_update")
		s.spoil(t, Fault{Kind: FaultClose, Code: code, Count: 1})
		s.nudge(t, tok)
		if code == 0 {
			code = CloseShed
		}
		if got := l.closed(); got != code {
			t.Errorf("got close code %d, want %d", got, code)
		}
	}
	s.spoil(t, Fault{Kind: FaultClose, Code: CloseAbuse, Frame: "hello", Count: 1})
	if l := s.connect(t); l.closed() != CloseAbuse {
		t.Error("the connection was not closed with code 4008 instead of the hello")
	}
	s.dial(t)
}

// TestRestartFaults checks that FaultRestart closes all connections and that FaultNewEpoch leaves them open.
func TestRestartFaults(t *testing.T) {
	s := open(t, Config{Markets: 40, Control: true})
	tok := openTokens(t, s.Venue, 1)[0]
	l, bystander := s.dial(t), s.dial(t)
	l.subscribe("orderbook", 0, tok.id)
	l.take("orderbook_snapshot")
	s.spoil(t, Fault{Kind: FaultNewEpoch, Count: 1})
	before := l.epoch
	s.nudge(t, tok)
	l.greeted(l.take("hello"))
	b := &bookCopy{}
	b.take(t, l.take("orderbook_snapshot"))
	if l.epoch == before || b.seq != 1 {
		t.Errorf("got epoch %s after %s, and seq %d; want a new epoch and seq 1", l.epoch, before, b.seq)
	}
	b.check(t, s, tok.id, 200, l.epoch)
	s.spoil(t, Fault{Kind: FaultRestart, Code: 1012, Frame: "pong", Count: 1})
	l.send("ping", "")
	for _, l := range []*listener{l, bystander} {
		if code := l.closed(); code != 1012 {
			t.Errorf("got close code %d, want 1012", code)
		}
	}
	if again := s.dial(t); again.epoch == l.epoch || again.epoch != s.Epoch() {
		t.Errorf("got epoch %s after %s, want the new epoch %s", again.epoch, l.epoch, s.Epoch())
	}
}

// TestOpeningFaults checks that faults can make the WebSocket handshake of a stream fail.
func TestOpeningFaults(t *testing.T) {
	s := open(t, Config{Control: true})
	for _, c := range []struct {
		fault  Fault
		status int
		header string
	}{
		{Fault{Kind: FaultStatus, Status: 503, RetryAfter: "7"}, 503, "7"}, {Fault{Kind: FaultStatus, Status: 429, Body: "html"}, 429, ""},
		{Fault{Kind: FaultHTML}, 200, ""}, {Fault{Kind: FaultRedirect, Status: 307}, 307, ""},
		{Fault{Kind: FaultReset}, 200, ""},
	} {
		c.fault.Count = 2
		s.spoil(t, c.fault)
		if w := send(s, "/api/exchange/market-search"); w.Code != 200 {
			t.Errorf("fault %+v changes a REST response", c.fault)
		}
		for range 2 {
			client := *s.client
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			_, response, err := websocket.Dial(t.Context(), s.url+StreamPath, &websocket.DialOptions{HTTPClient: &client})
			if err == nil || response == nil || response.StatusCode != c.status || response.Header.Get("Retry-After") != c.header {
				t.Errorf("fault %+v: got response %v and error %v, want status %d", c.fault, response, err, c.status)
			}
		}
		s.dial(t)
	}
	s.spoil(t, Fault{Kind: FaultDelay, DelayMs: 20, Count: 1})
	s.dial(t)
	// Faults for all endpoints do not affect the stream.
	if err := s.SetFaults([]Fault{{Path: "*", Kind: FaultStatus}}); err != nil {
		t.Fatal(err)
	}
	s.dial(t)
}

// TestFaultProbability checks that a fault with a probability drops the same frames for equal seeds, and other frames for another
// seed.
func TestFaultProbability(t *testing.T) {
	s := open(t, Config{Markets: 40})
	tok := openTokens(t, s.Venue, 1)[0]
	run := func(seed uint64) (kept []uint64) {
		s.Reset()
		l := s.dial(t)
		l.subscribe("prices", 0, tok.id)
		first := number(t, l.take("price_update"), "seq")
		if err := s.SetFaults([]Fault{{Path: StreamPath, Kind: FaultDrop, Probability: 0.3, Seed: seed}}); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			s.nudge(t, tok)
		}
		for _, f := range l.settle() {
			kept = append(kept, number(t, f, "seq")-first)
		}
		_ = l.ws.CloseNow()
		s.eventually(t, "the connection has ended", func() bool { return s.Stats().Stream.Connections == 0 })
		return kept
	}
	a := run(1)
	if len(a) < 50 || len(a) > 90 {
		t.Errorf("got %d of 100 frames, want 50 to 90", len(a))
	}
	if !slices.Equal(a, run(1)) || slices.Equal(a, run(2)) {
		t.Error("equal seeds dropped different frames, or different seeds dropped the same frames")
	}
	// A fault of REST responses can have a probability too.
	if err := s.SetFaults([]Fault{{Path: "*", Kind: FaultStatus, Probability: 0.5}}); err != nil {
		t.Fatal(err)
	}
	codes := map[int]int{}
	for range 100 {
		codes[send(s, "/api/exchange/prices?tokenId="+tok.id).Code]++
	}
	if codes[200] < 30 || codes[500] < 30 {
		t.Errorf("got numbers of responses by status %v, want at least 30 of each", codes)
	}
}

func TestStreamFaultRules(t *testing.T) {
	v := New(Config{Markets: 1})
	for name, f := range map[string]Fault{
		"kind of answers":     {Path: StreamPath, Kind: FaultTruncated},
		"kind of frames":      {Path: "*", Kind: FaultDrop},
		"channel":             {Path: StreamPath, Kind: FaultDrop, Channel: "weather"},
		"frame":               {Path: StreamPath, Kind: FaultDrop, Frame: "weather"},
		"code":                {Path: StreamPath, Kind: FaultClose, Code: 1006},
		"low code":            {Path: StreamPath, Kind: FaultClose, Code: 999},
		"high code":           {Path: StreamPath, Kind: FaultClose, Code: 5000},
		"probability":         {Path: StreamPath, Kind: FaultDrop, Probability: 1.1},
		"negative":            {Path: StreamPath, Kind: FaultDrop, Probability: -0.1},
		"channel of answers":  {Path: "*", Kind: FaultStatus, Channel: "prices"},
		"frame of an opening": {Path: StreamPath, Kind: FaultStatus, Frame: "hello"},
	} {
		if v.SetFaults([]Fault{f}) == nil {
			t.Errorf("%s: %+v was accepted", name, f)
		}
	}
	for _, kind := range slices.Concat(streamFaults, openingFaults) {
		if err := v.SetFaults([]Fault{{Path: StreamPath, Kind: kind}}); err != nil {
			t.Errorf("SetFaults with %s: %v", kind, err)
		}
	}
	v.Reset()
	if v.faults.hasFrameRules.Load() || v.faults.hasResponseRules.Load() {
		t.Error("rules are still active after a reset")
	}
}
