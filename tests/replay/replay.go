// Package replay tests the codecs of venues' streams with scripts of requests and frames.
package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue/stream"
	"oddsgraph/tests/tool"
)

// Session is a codec and its clock. It is also the codec's observer.
type Session struct {
	stream.Codec
	Now time.Time
	// Do executes the commands of a script that only one codec has. It may be nil.
	Do func(words []string) []stream.Event
	// Kinds makes the type of each frame a note. Otherwise there is a note for frames of unknown types only.
	Kinds bool
	notes []string
	rid   int
}

// Frame implements stream.Observer.
func (s *Session) Frame(kind string) {
	if s.Kinds || kind == "unknown" {
		s.notes = append(s.notes, kind+" frame")
	}
}

// Drift implements stream.Observer.
func (s *Session) Drift(what string) { s.notes = append(s.notes, what) }

// Reconnect implements stream.Observer.
func (s *Session) Reconnect(string) {}

var verbs = map[string]stream.Verb{
	"subscribe": stream.VerbSubscribe, "unsubscribe": stream.VerbUnsubscribe, "resync": stream.VerbResync, "ping": stream.VerbPing,
}

// Run replays a script and compares what the codec does with the golden file file.golden. A script has several parts. The line "== b"
// begins a part with a new session, and "== b: a" one that continues the session of the part a. Each further line is a frame "< …", a
// comment "# …", a wait such as "wait 1s", a request such as "subscribe prices A B", or a command for Session.Do.
func Run(t *testing.T, file string, open func(s *Session)) {
	t.Helper()
	script, err := os.ReadFile(file + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	parts, titles := make(map[string][]string), []string(nil)
	for line := range strings.Lines(string(script)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "== "); ok {
			titles = append(titles, title)
		} else if n := len(titles) - 1; line != "" {
			parts[titles[n]] = append(parts[titles[n]], line)
		}
	}
	var got strings.Builder
	for _, title := range titles {
		s := &Session{Now: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)}
		open(s)
		fmt.Fprintf(&got, "== %s\n", title)
		if _, base, ok := strings.Cut(title, ": "); ok {
			for _, line := range parts[base] {
				s.do(line)
			}
		}
		for _, line := range parts[title] {
			got.WriteString(line + "\n" + s.do(line))
		}
	}
	tool.Golden(t, file+".golden", got.String())
}

// do executes a line and returns what it causes: frames, events and notes.
func (s *Session) do(line string) string {
	var out strings.Builder
	var events []stream.Event
	s.notes = nil
	words := strings.Fields(line)
	switch verb := verbs[words[0]]; {
	case words[0] == "#":
	case words[0] == "<":
		if events = s.Decode([]byte(strings.TrimPrefix(strings.TrimPrefix(line, "<"), " ")), s.Now); len(events) == 0 {
			events = []stream.Event{{Kind: stream.EventLife}}
		}
	case words[0] == "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			panic(err)
		}
		s.Now = s.Now.Add(d)
	case verb != 0:
		s.rid++
		r := &stream.Request{Verb: verb, Rid: fmt.Sprint("r", s.rid)}
		for _, id := range words[min(2, len(words)):] {
			r.Topics = append(r.Topics, messages.Topic{Channel: messages.Channel(words[1]), ID: id})
		}
		for _, frame := range s.Encode(r) {
			fmt.Fprintf(&out, "  > %s\n", frame)
		}
	default:
		events = s.Do(words)
	}
	for _, e := range events {
		out.WriteString("  " + strings.ReplaceAll(Show(e, s.Now), "\n", "\n  ") + "\n")
	}
	for _, what := range s.notes {
		out.WriteString("  note: " + what + "\n")
	}
	return out.String()
}

// Show returns an event as text. A message that was not received now also has the time at which it was received.
func Show(e stream.Event, now time.Time) string {
	topic := func(t messages.Topic) string {
		if t.Scope != "" {
			return fmt.Sprintf("%s:%s@%s", t.Channel, t.ID, t.Scope)
		}
		return fmt.Sprintf("%s:%s", t.Channel, t.ID)
	}
	switch e.Kind {
	case stream.EventLife:
		return "life"
	case stream.EventGarbage:
		return "garbage"
	case stream.EventHello:
		h := e.Hello
		return fmt.Sprintf("hello %s heartbeat %s topics %d depth %d frames %d bytes %d", e.Epoch, h.Heartbeat, h.Topics, h.Depth, h.FramesPerSecond, h.FrameBytes)
	case stream.EventAck:
		out := "ack " + e.Rid
		for i := 0; e.Rid == "" && i < len(e.Topics); i++ {
			out = strings.TrimSpace(out) + " " + topic(e.Topics[i])
		}
		return out
	case stream.EventError:
		return fmt.Sprintf("error %s %s %v %s", e.Rid, e.Code, e.IDs, e.RetryAfter)
	case stream.EventHeartbeat:
		out := "heartbeat " + e.Epoch
		for _, t := range slices.SortedFunc(maps.Keys(e.Seqs), func(a, b messages.Topic) int { return strings.Compare(topic(a), topic(b)) }) {
			out += fmt.Sprintf(" %s=%d", topic(t), e.Seqs[t])
		}
		return out
	case stream.EventBad:
		return "bad " + topic(e.Topic)
	}
	m := e.Message
	out := fmt.Sprintf("%s %d %s/%d<%d at %s:", topic(m.Topic), m.Kind, m.Epoch, m.Seq, m.PrevSeq, tool.Text(m.Time))
	if m.Depth != 0 {
		out += fmt.Sprint(" depth ", m.Depth)
	}
	if !m.ReceivedAt.Equal(now) {
		out += fmt.Sprint(" received at ", tool.Text(m.ReceivedAt))
	}
	for _, part := range []any{m.Price, m.Spread, m.Book, m.Changes, m.Trades, m.Market, m.Orders, m.Positions, m.Balance} {
		if text, _ := json.Marshal(part); string(text) != "null" {
			out += "\n    " + string(text)
		}
	}
	return out
}

// ShowAll returns the events of a frame as text, one a line. Without events, the frame only shows that the venue is alive.
func ShowAll(events []stream.Event, now time.Time) string {
	if len(events) == 0 {
		return "life"
	}
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = Show(e, now)
	}
	return strings.Join(lines, "\n")
}
