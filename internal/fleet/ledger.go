package fleet

import (
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"oddsgraph/internal/market/shared"
)

const (
	// DefaultSpan is the default of Config.Span.
	DefaultSpan = time.Minute
	// DefaultUse is the default of Config.Use.
	DefaultUse = 5 * time.Second
	// slack is added to Config.Span, because clocks may round times to milliseconds.
	slack = 10 * time.Millisecond
	// askAgain is the time to wait before the next call of Ask if Redis has not answered the last request.
	askAgain = time.Second
	// maxEnds bounds the number of notes (see the type note) that wait to be sent to Redis. If there are more notes, the oldest ones
	// are lost. If the note of an ended call is lost, the call counts for longer than necessary.
	maxEnds = 4096
	// maxNotes bounds the number of notes in one call of end.lua.
	maxNotes = 256
)

//go:embed ask.lua
var askText string

//go:embed end.lua
var endText string

var askScript, endScript = rueidis.NewLuaScript(askText), rueidis.NewLuaScript(endText)

// windowKey returns the Redis key of the window of a scope: the set of the calls that count against the limit. The scope of the
// public calls is empty.
func (f *Fleet) windowKey(scope string) string {
	if scope == "" {
		return f.prefix + "window:public"
	}
	return f.prefix + "window:" + hex.EncodeToString([]byte(scope))
}

// grantLifetime returns how long a granted call counts against the limit if no replica reports the end of the call.
func (f *Fleet) grantLifetime() time.Duration {
	return f.cfg.Span + slack + f.cfg.Use + f.cfg.CallTimeout
}

// Ask requests n calls of a scope; see ratelimit.Ledger. limit bounds the calls of the scope: in any period of Config.Span, Redis
// grants no more than limit to all replicas together. Ask does not wait. Another goroutine calls reply once, or perhaps never if
// the fleet is closed.
func (f *Fleet) Ask(scope string, limit, n int, reply func(shared.Grant)) {
	prefix := f.replica + "." + strconv.FormatUint(f.asks.Add(1), 36) + "."
	f.start(func() {
		answer, err := call(f, f.ctx, commandAsk, func(ctx context.Context, client rueidis.Client) ([]int64, error) {
			return askScript.Exec(ctx, client, []string{f.windowKey(scope), f.windowKey("")}, []string{
				strconv.Itoa(limit), strconv.Itoa(n), strconv.FormatInt(f.grantLifetime().Milliseconds(), 10), prefix,
				strconv.FormatInt((f.cfg.Span + slack).Milliseconds(), 10),
			}).AsIntSlice()
		})
		if err == nil && len(answer) != 5 {
			err = errors.New("unexpected answer of the ask script")
		}
		if err != nil {
			if !errors.Is(err, errOpen) {
				f.End(scope, nil, names(prefix, n)) // Redis may have granted these calls
			}
			f.counts.unanswered.Add(uint64(n))
			reply(shared.Grant{Away: true, Again: askAgain})
			return
		}
		granted, hold := int(answer[0]), time.Duration(answer[3])*time.Millisecond
		f.counts.granted.Add(uint64(granted))
		f.counts.refused.Add(uint64(max(n-granted, 0)))
		if hold > 0 {
			f.setHold(scope, f.clock.Now().Add(hold))
		}
		reply(shared.Grant{
			Calls: names(prefix, granted), Left: int(answer[1]), Assumed: int(answer[4]), Again: time.Duration(answer[2]) * time.Millisecond, Hold: hold,
		})
	})
}

func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = prefix + strconv.Itoa(i+1)
	}
	return list
}

// End tells Redis which granted calls have ended now and which were not made. It does not wait.
func (f *Fleet) End(scope string, ended, unused []string) {
	now, notes := f.clock.Now(), make([]note, 0, len(ended)+len(unused))
	for _, call := range ended {
		notes = append(notes, note{scope, "ended", call, now})
	}
	for _, call := range unused {
		notes = append(notes, note{scope, "unused", call, now})
	}
	f.note(notes...)
}

// Hold tells Redis until when the venue refuses calls of a scope. It does not wait.
func (f *Fleet) Hold(scope string, until time.Time) {
	f.setHold(scope, until)
	f.note(note{scope, "hold", "hold", until})
}

// note is a message to end.lua about a call or a hold in the window of a scope. note.kind is "ended", "unused" or "hold".
// note.at is the end of the call or of the hold.
type note struct {
	scope, kind, call string
	at                time.Time
}

// ms returns the milliseconds for end.lua: the time since a call ended, or how long the venue still refuses calls.
func (n note) ms(now time.Time) int64 {
	if n.kind == "hold" {
		return max(n.at.Sub(now), 0).Milliseconds()
	}
	return max(now.Sub(n.at), 0).Milliseconds()
}

// ends contains the notes that wait for Redis. Notes that could not be sent are appended again.
type ends struct {
	mu   sync.Mutex
	list []note
	wake chan struct{}
}

func (f *Fleet) note(notes ...note) {
	f.ends.mu.Lock()
	f.ends.list = append(f.ends.list, notes...)
	f.ends.list = f.ends.list[max(len(f.ends.list)-maxEnds, 0):]
	f.ends.mu.Unlock()
	f.wakeEnds()
}

func (f *Fleet) wakeEnds() {
	select {
	case f.ends.wake <- struct{}{}:
	default:
	}
}

// sendEnds sends the notes until the fleet is closed, and then tries to send the rest. While the circuit is open, the notes wait.
func (f *Fleet) sendEnds() {
	for f.ctx.Err() == nil {
		select {
		case <-f.ends.wake:
		case <-f.ctx.Done():
		}
		for f.ctx.Err() == nil && f.circuit.closed() {
			notes := f.takeNotes()
			if len(notes) == 0 {
				break
			}
			_, err := call(f, f.ctx, commandEnd, func(ctx context.Context, client rueidis.Client) (struct{}, error) {
				return struct{}{}, f.send(ctx, client, notes)
			})
			if err != nil {
				f.note(notes...)
				f.sleep(f.cfg.Timeout)
			}
		}
	}
	if client := f.client.Load(); client != nil && f.circuit.closed() {
		ctx, cancel := context.WithTimeout(context.Background(), f.cfg.Timeout)
		defer cancel()
		for notes := f.takeNotes(); len(notes) > 0; notes = f.takeNotes() {
			if f.send(ctx, *client, notes) != nil {
				return
			}
		}
	}
}

// takeNotes removes and returns the first notes of the list that have the same scope, but at most maxNotes.
func (f *Fleet) takeNotes() []note {
	f.ends.mu.Lock()
	defer f.ends.mu.Unlock()
	list := f.ends.list
	n := 0
	for n < min(len(list), maxNotes) && list[n].scope == list[0].scope {
		n++
	}
	f.ends.list = list[n:]
	return list[:n:n]
}

func (f *Fleet) send(ctx context.Context, client rueidis.Client, notes []note) error {
	now := f.clock.Now()
	args := []string{strconv.FormatInt((f.cfg.Span + slack).Milliseconds(), 10)}
	for _, n := range notes {
		args = append(args, n.kind, n.call, strconv.FormatInt(n.ms(now), 10))
	}
	return endScript.Exec(ctx, client, []string{f.windowKey(notes[0].scope)}, args).Error()
}
