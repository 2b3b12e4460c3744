package market

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is a kind of data that is read.
type Kind uint8

// The kinds, in the order in which they are told.
const (
	KindPrice Kind = iota
	KindSpread
	KindBook
	KindHistory
	KindMarket
	KindEvent
	KindSearch
	KindBalance
	KindPositions
	KindOrders
	KindTrades
	KindUserHistory
	// Kinds is the number of kinds.
	Kinds = iota
)

var kindNames = [Kinds]string{
	"price", "spread", "book", "history", "market", "event", "search", "balance", "positions", "orders", "trades", "user_history",
}

// String returns the name of the kind, as metrics show it.
func (k Kind) String() string { return kindNames[k] }

// User reports whether the kind is data of one account, as the holder of its credentials sees it.
func (k Kind) User() bool { return k >= KindBalance }

// Asked is what a client's document says of an operation. It is shared and must not be changed.
type Asked struct {
	// Type is query, mutation or subscription.
	Type string
	// Name is the operation's name in the document, cut to 64 bytes; a word of the client's.
	Name string
	// Document is the SHA-256 of the document in hex.
	Document string
}

// OutcomeOK and OutcomeCancelled are outcomes of operations that are no error codes: all went well, or the client left
// before it had its answer.
const (
	OutcomeOK        = "ok"
	OutcomeCancelled = "cancelled"
)

// ExchangeCancelled is the outcome of an HTTP call that nobody waited for any more.
const ExchangeCancelled = "CANCELLED"

// Operation is what the front door knows of an operation, or of a request that was refused before it was one.
type Operation struct {
	// Transport is http, sse or websocket, Caller says by what the client is known: anonymous, credentials or account.
	Transport, Caller string
	// Asked is nil where the request was refused before it was known what it asks.
	Asked *Asked
	// Trusted is the name of a trusted document, else empty. There are as many as the manifest has documents.
	Trusted string
	// Outcome is OutcomeOK, OutcomeCancelled or the code of the first error, Codes are those of all errors, each once.
	Outcome string
	Codes   []string
	// Rule is which rule it was refused by for what it would cost; empty where it was not.
	Rule string
	// Response is what the cache of whole responses said: hit, shared with an equal request, miss, or bypass where it was not
	// to be asked; empty where it has no part in it.
	Response string
	Started  time.Time
	// Elapsed is the time until the response was made, or the subscription over.
	Elapsed time.Duration
	// Points is the cost of the operation.
	Points int64
	// Status is that of HTTP, 0 on other transports. Bytes is the size of the response as it is sent, of a subscription that
	// of its Events.
	Status        int
	Bytes, Events int64
}

// Type returns the type of the operation, or "unknown".
func (o *Operation) Type() string {
	if o.Asked == nil {
		return "unknown"
	}
	return o.Asked.Type
}

// Journal notes what an operation took. Its Operation belongs to whoever carries the operation out; all else may be used by
// many at once, and by those that read for the operation still when it is over. A nil Journal ignores everything.
type Journal struct {
	Operation
	// Span is the operation's span; nil where it is not traced. Explained tells that the client is to be told all that is
	// noted. Both are set before anything is read.
	Span      Span
	Explained bool

	// reads is nil until a context is made that notes them.
	reads *[Kinds]counts

	// mu protects the rest.
	mu      sync.Mutex
	batches []Batch
	// served are the spans of the operations that get the response of this one; by is the span of the one whose response this
	// one gets.
	served []Span
	by     Span
}

// counts are Reads that are counted still.
type counts struct{ hits, stale, absent, misses, joined, excused atomic.Uint32 }

// noting is a context whose reads are noted, in one piece with their counts.
type noting struct {
	requestContext
	reads [Kinds]counts
}

// WithJournal returns a context whose reads are noted in j, for which it is called once, before anything is read.
func WithJournal(ctx context.Context, j *Journal) context.Context {
	n := &noting{requestContext: derive(ctx)}
	n.journal = j
	if j != nil {
		j.reads = &n.reads
	}
	return n
}

// Reads count the keys of one kind that an operation has read, each once.
type Reads struct {
	// Hits and Stale were answered by the cache, Absent by its memory of what there is not. Misses had to be asked for.
	Hits, Stale, Absent, Misses uint32
	// Joined are those of the misses that were on their way for others already, Excused those that the venue failed to
	// answer and that were answered by what is stale.
	Joined, Excused uint32
}

// Plus returns the sums.
func (r Reads) Plus(more Reads) Reads {
	return Reads{
		r.Hits + more.Hits, r.Stale + more.Stale, r.Absent + more.Absent, r.Misses + more.Misses, r.Joined + more.Joined, r.Excused + more.Excused,
	}
}

// Looked notes what the cache said of keys.
func (j *Journal) Looked(k Kind, r Reads) {
	if j == nil || j.reads == nil {
		return
	}
	counts := &j.reads[k]
	for _, c := range [...]struct {
		to *atomic.Uint32
		n  uint32
	}{{&counts.hits, r.Hits}, {&counts.stale, r.Stale}, {&counts.absent, r.Absent}, {&counts.misses, r.Misses}, {&counts.joined, r.Joined}, {&counts.excused, r.Excused}} {
		if c.n > 0 {
			c.to.Add(c.n)
		}
	}
}

// Reads returns what the cache has said of keys of a kind so far.
func (j *Journal) Reads(k Kind) Reads {
	if j.reads == nil {
		return Reads{}
	}
	c := &j.reads[k]
	return Reads{c.hits.Load(), c.stale.Load(), c.absent.Load(), c.misses.Load(), c.joined.Load(), c.excused.Load()}
}

// Exchange is one HTTP call to the venue.
type Exchange struct {
	// Endpoint is the last segment of the path, Keys the number of ids asked for.
	Endpoint string
	Keys     int
	// Status is 0 when no answer came; Outcome is OutcomeOK, an error code or ExchangeCancelled.
	Status  int
	Outcome string
	Started time.Time
	// Waited is how long the call was held back before that, by the budget or for others to end; Elapsed how long it took.
	Waited, Elapsed time.Duration
	// Trace is the place of the call in a trace, zero where it was given none.
	Trace TraceContext
	// Age is how old the answer may be; zero for a call that failed.
	Age Age
}

// Age is how old an answer of the venue may be, since caches lie between. The zero Age is of an answer that does not say.
type Age struct {
	// Known reports that the answer's header says how old it is.
	Known bool
	// Least and Most bound the time from when the venue made the answer to when the answer came.
	Least, Most time.Duration
	// Renewed is the time from then until a further call brings a newer answer; 0 where that is not known.
	Renewed time.Duration
}

// With returns the age of what was read by two calls.
func (a Age) With(b Age) Age {
	return Age{Known: a.Known || b.Known, Least: min(a.Least, b.Least), Most: max(a.Most, b.Most), Renewed: max(a.Renewed, b.Renewed)}
}

// Batch is one read of the venue that answers keys of one or several operations, by one HTTP call or more.
type Batch struct {
	// Serial tells batches apart.
	Serial   uint64
	Kind     Kind
	Priority Priority
	// Keys is the number of all its keys, Own that of the keys which the operation waits for.
	Keys, Own int
	// Formed is when its first key came, Admitted when the budget let it go, Left when it left, Ended when all keys were
	// answered; zero where it did not come so far.
	Formed, Admitted, Left, Ended time.Time
	Calls                         []Exchange
	// Outcome is OutcomeOK or the error code of the batch as a whole.
	Outcome string
}

// maxBatches bounds the batches that are noted of one operation, so that no query holds an endless list.
const maxBatches = 256

// NoteBatch notes a batch that the operation waits for, or waits for with more keys.
func (j *Journal) NoteBatch(b Batch) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := slices.IndexFunc(j.batches, func(known Batch) bool { return known.Serial == b.Serial }); i >= 0 {
		b.Own += j.batches[i].Own
		j.batches[i] = b
		return
	}
	if len(j.batches) < maxBatches {
		if j.batches == nil {
			j.batches = make([]Batch, 0, 8)
		}
		j.batches = append(j.batches, b)
	}
}

// Batches returns the batches that the operation has waited for, in the order in which they were answered.
func (j *Journal) Batches() []Batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.batches)
}

// Calls returns how many HTTP calls to the venue the operation has waited for.
func (j *Journal) Calls() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.batches {
		n += len(j.batches[i].Calls)
	}
	return n
}

// Serve notes that another operation gets the response of this one.
func (j *Journal) Serve(other *Journal) {
	if j == nil || other == nil || j == other || other.Span == nil {
		return
	}
	j.mu.Lock()
	j.served = append(j.served, other.Span)
	j.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	other.by = j.Span
}

// ServedBy returns the span of the operation whose response this one gets; nil for its own, or where that is not traced.
func (j *Journal) ServedBy() Span {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.by
}

// Spans returns the span of the operation and those of the operations that get its response, as far as they are traced.
func (j *Journal) Spans() []Span {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Span == nil {
		return slices.Clone(j.served)
	}
	return append([]Span{j.Span}, j.served...)
}
