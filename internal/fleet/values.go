package fleet

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"oddsgraph/internal/market/shared"
)

//go:embed claim.lua
var claimText string

//go:embed put.lua
var putText string

var claimScript, putScript = rueidis.NewLuaScript(claimText), rueidis.NewLuaScript(putText)

const (
	// A record in Redis consists of recordMark, the start and the end of the call to the venue, and the value. Both times are server
	// times with stampLen digits. Drop replaces a record by dropMark and the present time plus clockError. Redis then rejects the
	// records of calls that started before the time in the dropMark.
	recordMark, dropMark = 'R', 'D'
	stampLen             = 16
	// dropFor is the lifetime of a dropMark. A response to a call that started before Drop is expected to arrive within this time.
	dropFor = time.Minute
	// clockError is the greatest expected difference between the server times that two replicas compute at the same moment.
	clockError = 50 * time.Millisecond
	// maxValue bounds the size of a value in bytes. maxRecords bounds the size of all records that one call reads.
	maxValue, maxRecords = 1 << 20, 16 << 20
	// maxFlushKey bounds the length of the key of a flush. A flush of a longer key flushes the whole kind.
	maxFlushKey = 1 << 10
	// maxAhead bounds how far a time in Redis may be in the future, in microseconds.
	maxAhead = 2_000_000
)

// valueKeys returns the names under which Redis stores the records of a kind of shared value, one name for each key. The names
// contain the version of the program and the time of the kind's last flush. So replicas of other versions use other names, and so
// do replicas that do not know the last flush yet.
func (f *Fleet) valueKeys(kind string, keys []string) []string {
	f.mu.Lock()
	generation := f.flushes[kind].at
	f.mu.Unlock()
	prefix := fmt.Sprintf("%svalue:%s:%s:%d:", f.prefix, f.cfg.Version, kind, generation)
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = prefix + key
	}
	return out
}

// Get calls receive for each key that has a record. If Redis does not answer, Get never calls receive.
func (f *Fleet) Get(ctx context.Context, kind string, keys []string, receive shared.Found) {
	names := f.valueKeys(kind, keys)
	records, err := f.read(ctx, commandGet, names, nil, 0, make([]string, len(names)))
	if err != nil {
		return
	}
	for i, record := range records {
		f.deliver(i, record, receive)
	}
}

// read calls claim.lua. rejected contains for each record the time of the record that this replica has rejected, or "".
func (f *Fleet) read(ctx context.Context, command string, names, locks []string, hold time.Duration, rejected []string) ([]string, error) {
	args := append([]string{
		f.replica, strconv.FormatInt(hold.Milliseconds(), 10), strconv.Itoa(1 + 2*stampLen + maxValue), strconv.Itoa(maxRecords),
	}, rejected...)
	return call(f, ctx, command, func(ctx context.Context, client rueidis.Client) ([]string, error) {
		answer, err := claimScript.Exec(ctx, client, slices.Concat(names, locks), args).AsStrSlice()
		if err == nil && len(answer) != len(names) {
			err = errors.New("unexpected answer of the claim script")
		}
		return answer, err
	})
}

// deliver passes the record of the key at index i to receive. It returns false if the record is unreadable or receive rejects it.
func (f *Fleet) deliver(i int, record string, receive shared.Found) (accepted bool) {
	if len(record) < 1+2*stampLen || record[0] != recordMark {
		return false
	}
	requestedAt, err1 := strconv.ParseInt(record[1:1+stampLen], 10, 64)
	receivedAt, err2 := strconv.ParseInt(record[1+stampLen:1+2*stampLen], 10, 64)
	return err1 == nil && err2 == nil &&
		receive(i, []byte(record[1+2*stampLen:]), f.serverClock.toOurs(requestedAt), f.serverClock.toOurs(receivedAt))
}

// Claim calls receive for each key that has a record, and tries to claim the other keys, and the keys whose records receive rejects.
// claimed reports for each key whether this replica has claimed the key and must fetch it. If claimed is false for a key without an
// accepted record, this or another replica has an earlier claim of the key that has not ended. hold is the greatest duration of a
// claim. If Redis does not answer, claimed is true for all keys.
func (f *Fleet) Claim(ctx context.Context, kind string, keys []string, hold time.Duration, receive shared.Found) (claimed []bool) {
	claimed = make([]bool, len(keys))
	names, rejected, indexes := f.valueKeys(kind, keys), make([]string, len(keys)), make([]int, len(keys))
	for i := range keys {
		claimed[i], indexes[i] = true, i
	}
	// The first call returns the records. The second call claims the keys whose records were rejected. If another replica has replaced
	// such a record in between, the second call returns the new record. If receive rejects that record, too, the key is claimed without
	// Redis.
	for range 2 {
		answer, err := f.read(ctx, commandClaim, names, lockKeys(names), hold, rejected)
		if err != nil {
			return claimed
		}
		again := 0
		for n, text := range answer {
			i := indexes[n]
			if claimed[i] = text == "ours"; claimed[i] || text == "theirs" || f.deliver(i, text, receive) {
				continue
			}
			claimed[i] = true
			names[again], rejected[again], indexes[again] = names[n], text[min(1, len(text)):min(1+stampLen, len(text))], i
			again++
		}
		if names, rejected, indexes = names[:again], rejected[:again], indexes[:again]; again == 0 {
			break
		}
	}
	return claimed
}

func lockKeys(names []string) []string {
	locks := make([]string, len(names))
	for i, name := range names {
		locks[i] = name + ":lock"
	}
	return locks
}

// Put stores records in Redis and ends this replica's claims of their keys. It does not store a record whose Keep is less than 1 ms
// or whose Value is longer than maxValue. requestedAt and receivedAt are the start and the end of the call to the venue. Put does
// not wait.
func (f *Fleet) Put(kind string, records []shared.Record, requestedAt, receivedAt time.Time) {
	keys := make([]string, len(records))
	args := []string{f.replica, f.stamp(requestedAt)}
	for i, r := range records {
		keys[i] = r.Key
		if keep := r.Keep.Milliseconds(); keep > 0 && len(r.Value) <= maxValue {
			args = append(args, string(recordMark)+f.stamp(requestedAt)+f.stamp(receivedAt)+string(r.Value), strconv.FormatInt(keep, 10))
		} else {
			args = append(args, "", "0")
		}
	}
	f.put(f.valueKeys(kind, keys), args)
}

// Drop removes the record of a key whose value has changed. Redis then rejects records of calls that started before Drop. Drop does
// not wait.
func (f *Fleet) Drop(kind, key string) {
	now := f.stamp(f.clock.Now().Add(clockError)) // the server times of two replicas may differ by clockError
	f.put(f.valueKeys(kind, []string{key}), []string{f.replica, now, string(dropMark) + now, strconv.FormatInt(dropFor.Milliseconds(), 10)})
}

func (f *Fleet) put(names, args []string) {
	if !f.circuit.closed() {
		return
	}
	f.start(func() {
		_, _ = call(f, f.ctx, commandPut, func(ctx context.Context, client rueidis.Client) (struct{}, error) {
			return struct{}{}, putScript.Exec(ctx, client, append(names, lockKeys(names)...), args).Error()
		})
	})
}

// stamp converts a time of this process to the server's time and returns it with stampLen digits.
func (f *Fleet) stamp(ours time.Time) string {
	return fmt.Sprintf("%0*d", stampLen, f.serverClock.toServer(ours))
}

// flush is a flush of a kind. at and before are the server's times of this flush and of the previous flush of the kind. If key is
// empty, all keys were flushed.
type flush struct {
	at, before int64
	key        string
}

// Flush flushes all records of a kind in Redis, whatever key is. The names of records contain the time of the last flush, so no
// process finds the earlier records, and Redis deletes them when they expire. Within about a second, the other replicas flush the
// entries of key from their own caches, or all entries of the kind if key is empty. Flush does not wait.
func (f *Fleet) Flush(kind, key string) {
	if len(key) > maxFlushKey {
		key = ""
	}
	f.mu.Lock()
	last := f.flushes[kind]
	f.flushes[kind] = flush{max(f.serverClock.toServer(f.clock.Now()), last.at+1), last.at, key}
	f.mu.Unlock()
	f.start(func() {
		_, err := call(f, f.ctx, commandFlush, func(ctx context.Context, client rueidis.Client) (struct{}, error) {
			f.mu.Lock()
			next := f.flushes[kind] // the newest flush, because the calls for several flushes may run in any order
			f.mu.Unlock()
			text := fmt.Sprintf("%d %d %s", next.at, next.before, next.key)
			return struct{}{}, client.Do(ctx, client.B().Hset().Key(f.prefix+"flushes").FieldValue().FieldValue(kind, text).Build()).Error()
		})
		if err != nil {
			f.log.Warn("the other replicas do not know of a flush of the cache", "kind", kind, "error", err)
		}
	})
}

// applyFlushes stores the flushes from Redis and passes new flushes of other replicas to onFlush. Its first call passes none,
// because the cache of a new replica is empty. now is the server's time. Flushes from the future are ignored.
func (f *Fleet) applyFlushes(texts map[string]string, now int64) {
	type order struct{ kind, key string }
	var orders []order
	f.mu.Lock()
	for kind, text := range texts {
		var next flush
		at, rest, _ := strings.Cut(text, " ")
		before, key, _ := strings.Cut(rest, " ")
		next.at, _ = strconv.ParseInt(at, 10, 64)
		next.before, _ = strconv.ParseInt(before, 10, 64)
		last := f.flushes[kind]
		if next.at <= last.at || next.at > now+maxAhead {
			continue
		}
		if next.key = key; next.before != last.at {
			next.key = "" // this replica has missed a flush in between
		}
		f.flushes[kind] = next
		if f.ticked {
			orders = append(orders, order{kind, next.key})
		}
	}
	f.ticked = true
	onFlush := f.onFlush
	f.mu.Unlock()
	for _, o := range orders {
		if onFlush != nil {
			onFlush(o.kind, o.key)
		}
	}
}

// OnFlush sets the function that is called after another replica has flushed a kind; see Flush.
func (f *Fleet) OnFlush(flush func(kind, key string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onFlush = flush
}
