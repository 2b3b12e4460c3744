package kalshi

import (
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/market/messages"
	"oddsgraph/tests/replay"
)

// start is the time of the clock of a driver.
var start = time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)

// TestSession replays the requests and frames of testdata/session.txt. The frames have the members of Kalshi's AsyncAPI description, of
// which the repository TexasCoding/kalshi-python-sdk has a copy, as specs/asyncapi.yaml. The values are invented.
func TestSession(t *testing.T) {
	replay.Run(t, "testdata/session", func(s *replay.Session) {
		c := newCodec(s, func() time.Time { return s.Now })
		c.epoch, s.Codec = "E", c
	})
}

func book(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
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
