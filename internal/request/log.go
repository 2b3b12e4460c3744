package request

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/upstream"
)

// Span is the span of an operation. The tracer's type implements it.
type Span interface {
	// Context returns the ids of the trace and of the span.
	Context() upstream.TraceContext
}

// OperationInfo describes an operation of a client's document. It is shared and must not be changed.
type OperationInfo struct {
	// Type is query, mutation or subscription.
	Type string
	// Name is the operation's name in the document, cut to 64 bytes. The client chooses it.
	Name string
	// Document is the SHA-256 of the document in hex.
	Document string
}

// OutcomeOK and OutcomeCancelled are the outcomes of an operation without an error code. OutcomeCancelled means that the client
// disconnected, or cancelled the operation, before the response.
const (
	OutcomeOK        = upstream.OutcomeOK
	OutcomeCancelled = "cancelled"
)

// Operation describes an operation, or a request that was refused. The HTTP layer sets its fields.
type Operation struct {
	// Transport is http, sse or websocket. Caller says how the client identified itself: anonymous, credentials or account.
	Transport, Caller string
	// Info is nil if the request was refused before its document was known.
	Info *OperationInfo
	// Trusted is the name of a trusted document. It is empty for other documents.
	Trusted string
	// Outcome is OutcomeOK, OutcomeCancelled or the code of the first error.
	Outcome string
	// Codes are the distinct codes of all errors.
	Codes []string
	// Rule is the cost rule that refused the operation. It is empty if no cost rule refused it.
	Rule string
	// Response is the result of the response cache: hit, shared, miss or bypass. It is shared if the response came from an equal
	// operation that was running, and bypass if the request must not use the cache. It is empty for operations that are never cached.
	Response string
	Started  time.Time
	// Elapsed is the time until the response was made or the subscription ended.
	Elapsed time.Duration
	// Points is the cost of the operation.
	Points int64
	// Status is the HTTP status. It is 0 on other transports.
	Status int
	// Events is the number of events of a subscription. Bytes is the size of the sent response, or of all these events.
	Bytes, Events int64
}

// Type returns the type of the operation, or "unknown".
func (o *Operation) Type() string {
	if o.Info == nil {
		return "unknown"
	}
	return o.Info.Type
}

// Log records the work of an operation. Only the goroutine that serves the operation may use the embedded Operation. The methods
// of Log are safe for concurrent use, even after the operation has ended. CountReads, NoteBatch, Serve and Spans accept a nil Log.
type Log struct {
	Operation
	// Span is the operation's span. It is nil if the operation is not traced. It must be set before the first read.
	Span Span
	// Explained reports that the response contains the log for the client. It must be set before the first read.
	Explained bool

	// reads is nil before Request.Record.
	reads *[upstream.Kinds]counts

	// mu protects the fields below.
	mu      sync.Mutex
	batches []upstream.Batch
	// served contains the spans of the operations that got this operation's response.
	served []Span
	// by is the span of the operation whose response this operation got. It is nil if this operation made its own response.
	by Span
}

// counts contains the numbers of CacheCounts as atomic integers.
type counts struct{ hits, stale, absent, misses, joined, excused, shared atomic.Uint32 }

// CacheCounts counts the keys of one kind that an operation has read. Each key counts once as Hits, Stale, Absent or Misses.
type CacheCounts struct {
	// Hits counts keys with a fresh entry, and Stale keys with a stale entry. Absent counts keys that the venue is known not to have.
	// Misses counts keys that had to be fetched.
	Hits, Stale, Absent, Misses uint32
	// Joined counts the misses that another operation was already fetching. Excused counts the misses whose call failed and for
	// which the operation got a stale value.
	Joined, Excused uint32
	// Shared counts the misses that were found in the cache that all replicas share.
	Shared uint32
}

// Plus returns the sums of all counts of c and d.
func (c CacheCounts) Plus(d CacheCounts) CacheCounts {
	return CacheCounts{
		c.Hits + d.Hits, c.Stale + d.Stale, c.Absent + d.Absent, c.Misses + d.Misses, c.Joined + d.Joined, c.Excused + d.Excused, c.Shared + d.Shared,
	}
}

// CountReads adds c to the counts of a kind.
func (l *Log) CountReads(k upstream.Kind, c CacheCounts) {
	if l == nil || l.reads == nil {
		return
	}
	n := &l.reads[k]
	n.hits.Add(c.Hits)
	n.stale.Add(c.Stale)
	n.absent.Add(c.Absent)
	n.misses.Add(c.Misses)
	n.joined.Add(c.Joined)
	n.excused.Add(c.Excused)
	n.shared.Add(c.Shared)
}

// Counts returns the counts of a kind so far.
func (l *Log) Counts(k upstream.Kind) CacheCounts {
	if l.reads == nil {
		return CacheCounts{}
	}
	c := &l.reads[k]
	return CacheCounts{c.hits.Load(), c.stale.Load(), c.absent.Load(), c.misses.Load(), c.joined.Load(), c.excused.Load(), c.shared.Load()}
}

const maxBatches = 256

// NoteBatch records a batch that the operation waits for. If a batch with the same Serial is already recorded, b replaces this
// batch, and Own becomes the sum of Own in both batches. If maxBatches batches are recorded, NoteBatch ignores a batch with a new
// Serial.
func (l *Log) NoteBatch(b upstream.Batch) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.batches, func(known upstream.Batch) bool { return known.Serial == b.Serial }); i >= 0 {
		b.Own += l.batches[i].Own
		l.batches[i] = b
		return
	}
	if len(l.batches) < maxBatches {
		if l.batches == nil {
			l.batches = make([]upstream.Batch, 0, 8)
		}
		l.batches = append(l.batches, b)
	}
}

// Batches returns the batches that the operation has waited for, at most maxBatches. They are in the order in which they were
// first recorded.
func (l *Log) Batches() []upstream.Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.batches)
}

// Calls returns the number of HTTP calls to the venue in the recorded batches.
func (l *Log) Calls() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.batches {
		n += len(l.batches[i].Calls)
	}
	return n
}

// Serve records that the operation of another log got the response of this operation. It records nothing if the other operation is
// not traced.
func (l *Log) Serve(other *Log) {
	if l == nil || other == nil || l == other || other.Span == nil {
		return
	}
	l.mu.Lock()
	l.served = append(l.served, other.Span)
	l.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	other.by = l.Span
}

// ServedBy returns the span of the operation whose response this operation got. It returns nil if this operation made its own
// response, or if one of the two operations is not traced.
func (l *Log) ServedBy() Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by
}

// Spans returns the spans of the operation and of all operations that got its response. Operations that are not traced have no
// span.
func (l *Log) Spans() []Span {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Span == nil {
		return slices.Clone(l.served)
	}
	return append([]Span{l.Span}, l.served...)
}
