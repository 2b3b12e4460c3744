package spent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
)

const (
	// lookEvery is the time between two attempts to lock the first file.
	lookEvery = time.Second
	// writeEvery is the time between two writes of the goroutine that Open starts. These writes keep the file younger than a minute
	// even if no calls are made.
	writeEvery = 5 * time.Second
)

// Config configures a Record.
type Config struct {
	// Dir is the directory of the files. Open creates it if necessary.
	Dir string
	// Venue is the URL of the venue. Each venue has files of its own.
	Venue string
	// Limit is the venue's limit of public calls per minute.
	Limit int
	// Cold is the time after the start during which the venue may still count unknown calls of an earlier process.
	Cold  time.Duration
	Clock market.Clock
	Log   *slog.Logger
}

// Record implements ratelimit.Record with a file. It is safe for concurrent use. Close releases the file.
type Record struct {
	cfg     Config
	started time.Time
	// ahead is the number of future calls that one write records in advance.
	ahead   int64
	inherit func(allowance ratelimit.Allowance, spent []ratelimit.Spent, until time.Time)
	stop    chan struct{}
	running sync.WaitGroup

	// writing is locked during each write, so that no call starts during a write.
	writing     sync.Mutex
	file        *os.File // if nil, nothing is recorded
	hasFirst    bool     // the process has or had the first file
	lastFailure string   // the text of the failure that was logged last

	mu sync.Mutex
	// calls is the content of the next write, but calls.Open counts only running calls. write adds the calls that it records in
	// advance.
	calls content
	// aheadLeft is the number of calls that were recorded in advance and have not started.
	aheadLeft int64
}

// New returns a record. Call Open before the first use of the record.
func New(cfg Config) *Record {
	return &Record{cfg: cfg, started: cfg.Clock.Now(), ahead: max(int64(cfg.Limit)/100-1, 0), stop: make(chan struct{}), calls: content{Magic: magic}}
}

// Open locks a file and passes the calls in the file to inherit. There are two files; see the package comment. The Record calls
// inherit again when it locks the other file, and every second until it has locked the first file. If the directory or the first
// file cannot be used, Open logs the error and does not call inherit. Open must be called once.
func (r *Record) Open(inherit func(allowance ratelimit.Allowance, spent []ratelimit.Spent, until time.Time)) {
	r.inherit = inherit
	err := os.MkdirAll(r.cfg.Dir, 0o700)
	if err == nil {
		err = r.join()
	}
	if err == nil || errors.Is(err, errTaken) {
		if err != nil {
			r.joinFailed(err)
		}
		r.running.Go(r.run)
		return
	}
	r.warn(err)
}

// Close writes the file for the last time and releases it.
func (r *Record) Close() {
	close(r.stop)
	r.running.Wait()
	r.writing.Lock()
	defer r.writing.Unlock()
	r.ahead = 0
	r.write()
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}

// run writes the file every writeEvery. It tries to lock the first file every lookEvery until it succeeds.
func (r *Record) run() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	written := time.Now()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
		}
		if !r.hasFirst {
			if err := r.join(); err != nil {
				r.joinFailed(err)
			}
		}
		if time.Since(written) >= writeEvery {
			r.writing.Lock()
			r.write()
			r.writing.Unlock()
			written = time.Now()
		}
	}
}

// now returns the start time plus the time that has passed since then, so it ignores changes of the wall clock. If the wall clock
// is set back by more than skew, the next process rejects the file as written in the future. If the wall clock is set forward by
// more than a minute, the next process rejects the file as too old. A smaller step forward is not detected: the recorded calls then
// seem older than they are.
func (r *Record) now() time.Time { return r.started.Add(r.cfg.Clock.Now().Sub(r.started)) }

// path returns the path of the first file, or of the second file if first is false.
func (r *Record) path(first bool) string {
	name := r.cfg.Venue
	if u, err := url.Parse(name); err == nil {
		name = u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/")
	}
	sum := sha256.Sum256([]byte(name))
	ending := ".reserve"
	if first {
		ending = ".calls"
	}
	return filepath.Join(r.cfg.Dir, hex.EncodeToString(sum[:6])+ending)
}

// join locks the first file and calls inherit. If another process has locked the first file and this process has no file, join
// locks the second file instead. If join fails because another process has locked the first file, the error is or wraps errTaken.
func (r *Record) join() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	before := r.file
	f, err := openLocked(r.path(true))
	first := err == nil
	if errors.Is(err, errTaken) && before == nil {
		if f, err = openLocked(r.path(false)); err != nil && !errors.Is(err, errTaken) {
			err = fmt.Errorf("%w; the file of the margin: %w", errTaken, err)
		}
	}
	if err != nil {
		return err
	}
	r.useFile(f, first)
	if before != nil {
		_ = before.Close()
	}
	return nil
}

// joinFailed calls inherit after join has returned err. A process with the second file keeps AllowMargin. A process without
// a file gets AllowNone.
func (r *Record) joinFailed(err error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	if err != errTaken {
		r.warn(err)
	}
	allowance := ratelimit.AllowNone
	if r.file != nil {
		allowance = ratelimit.AllowMargin
	}
	r.inherit(allowance, nil, r.now().Add(span+skew))
}

// useFile starts to use a file and passes the calls in the file to inherit. The calling function has locked r.writing.
func (r *Record) useFile(f *os.File, first bool) {
	now := r.now()
	old, err := read(f, now)
	r.file, r.hasFirst = f, first
	var spent []ratelimit.Spent
	whole := now.Add(r.cfg.Cold)
	r.mu.Lock()
	if err == nil {
		whole = market.Earlier(whole, time.UnixMilli(old.Whole))
		old.add(now, old.Open) // the calls that were running may have lasted until now
		for _, s := range old.Ended {
			// end is the end of the second s, with a monotonic clock reading.
			end := now.Add(time.Unix(s.At+1, 0).Sub(now))
			if s.Calls > 0 && end.Add(span+skew).After(now) {
				r.calls.add(time.Unix(s.At, 0), s.Calls)
				spent = append(spent, ratelimit.Spent{Calls: int(min(s.Calls, int64(r.cfg.Limit))), At: end})
			}
		}
	}
	r.calls.Whole = whole.UnixMilli()
	r.mu.Unlock()
	if errors.Is(err, errDamaged) {
		_ = f.Truncate(0) // the damaged file may be longer than the new content; if Truncate fails, the write fails, too
	}
	r.write()
	switch {
	case !first:
		r.cfg.Log.Warn("another process uses the state file; until it exits, this process uses only the margin of the limit", "file", f.Name())
		r.inherit(ratelimit.AllowMargin, spent, now.Add(span+skew))
	case whole.After(now):
		r.cfg.Log.Info("the state file does not contain all calls of the last minute; only the margin of the limit is used until it does, or until the venue reports how many calls remain",
			"file", f.Name(), "reason", cmp.Or(err, errYoung), "until", whole.Round(time.Second))
		r.inherit(ratelimit.AllowMarginFirst, spent, whole)
	default:
		r.inherit(ratelimit.AllowAll, spent, time.Time{})
	}
}

// warn logs a failure if it differs from the last logged failure.
func (r *Record) warn(err error) {
	if text := err.Error(); text != r.lastFailure {
		r.lastFailure = text
		r.cfg.Log.Warn("calls are not recorded, so a restart begins with the margin of the limit", "dir", r.cfg.Dir, "error", text)
	}
}

// Take records a call before it is sent. If the last write did not record the call in advance, Take writes the file.
func (r *Record) Take() {
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	r.calls.Open++
	r.aheadLeft--
	covered := r.aheadLeft >= 0
	r.mu.Unlock()
	if !covered {
		r.write()
	}
}

// End records the end of a call. Until the next write, the file counts the call as running.
func (r *Record) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Open--
	r.calls.add(r.now(), 1)
}

// write writes the file, if there is one. The calling function has locked r.writing. If write fails, it removes the file, because
// the old content would lack calls. Then nothing is recorded until the process locks a file again. It tries this only if it has not
// had the first file yet.
func (r *Record) write() {
	if r.file == nil {
		return
	}
	r.mu.Lock()
	c := r.calls
	r.aheadLeft = r.ahead
	r.mu.Unlock()
	c.Written = r.now().UnixMilli()
	c.Open = max(c.Open, 0) + r.ahead
	if _, err := r.file.WriteAt(c.encode(), 0); err != nil {
		r.warn(errors.Join(err, os.Remove(r.file.Name())))
		_ = r.file.Close()
		r.file = nil
	}
}
