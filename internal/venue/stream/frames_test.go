package stream

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
)

var update = flag.Bool("update", false, "rewrite the golden frames")

// TestFrameBytes compares the frames that the client sends with testdata/frames.txt. Each line of the file contains the time since
// the start of the test, the number of the connection, and the frame.
func TestFrameBytes(t *testing.T) {
	var sent []sentFrame
	inBubble(t, func(_ *Config, v *venue) { v.refuse = errors.New("later") }, func(b *bench) {
		b.watch(book("T1"), book("T\"2"), book("T<3>"), price("T1"), trades("T1"))
		b.watch(messages.Topic{Channel: messages.ChannelMarket, ID: "M1"}, messages.Topic{Channel: messages.ChannelMarket, ID: "M2"})
		b.settle()
		b.venue.set(func() { b.venue.refuse = nil })
		b.advance(5 * time.Second)
		b.watchUser("s1")
		b.advance(30 * time.Second)
		b.Resync(book("T1"))
		b.advance(time.Second)
		b.Unwatch(price("T1"))
		b.Unwatch(book("T\"2"))
		b.Unwatch(messages.Topic{Channel: messages.ChannelMarket, ID: "M2"})
		b.advance(45 * time.Second)
		b.conn(0).drop(1006)
		b.advance(5 * time.Second)
		b.conn(1).drop(1006)
		b.advance(5 * time.Second)
		sent = b.venue.sent("")
	})
	var got strings.Builder
	verbs := map[string]bool{}
	for _, f := range sent {
		verbs[f.Type] = true
		fmt.Fprintf(&got, "%s %d %s\n", f.at, f.conn, strings.ReplaceAll(f.raw, canary, "CREDENTIALS"))
	}
	for _, verb := range []string{"auth", "subscribe", "unsubscribe", "resync", "ping"} {
		if !verbs[verb] {
			t.Errorf("the client sent no frame of the type %s", verb)
		}
	}
	file := filepath.Join("testdata", "frames.txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the frames are\n%s\nwant\n%s", &got, want)
	}
}
