package ratelimit

import (
	"time"

	"oddsgraph/internal/market/shared"
)

// Ledger grants calls to several processes that share the venue's limits. Its methods must not wait and must be safe for
// concurrent use.
type Ledger interface {
	// Ask requests n calls of a scope. A scope identifies credentials, or is empty for calls without credentials. The ledger grants
	// all processes together at most maxCalls in any 60 seconds. Another goroutine calls reply later, at most once; a closed ledger
	// may never call reply.
	Ask(scope string, maxCalls, n int, reply func(shared.Grant))
	// End tells the ledger which granted calls have just ended and which were not made. An ended call counts for 60 seconds from
	// now. The ledger can grant an unused call again at once.
	End(scope string, ended, unused []string)
	// Hold tells the ledger until when the venue refuses calls of a scope.
	Hold(scope string, until time.Time)
}

// Sharing configures how processes share the venue's limits. While the ledger does not answer, each process may make an equal part
// of the calls.
type Sharing struct {
	Ledger Ledger
	// Replicas is the greatest number of processes that run at the same time.
	Replicas int
	// SameScopes is true if all processes use the same scope for the same credentials. If SameScopes is true, the ledger also grants
	// calls with credentials. If SameScopes is false, each process may make an equal part of the Config.Key calls.
	SameScopes bool
}

const (
	// maxAsk bounds the number of calls in one request to the ledger.
	maxAsk = 16
	// askEvery is the age of the ledger's last answer from which lookAgain asks it again how many calls remain. It is also the pause
	// after the venue has reported fewer remaining calls than the margin.
	askEvery = time.Second
)

// SharedStatus is the state of a public limit that several processes share. All counts are numbers of calls.
type SharedStatus struct {
	// Granted counts the granted calls of the last 60 seconds, and Left estimates how many the ledger can still grant.
	Granted, Left int
	// Part is the number of calls that this process may make in any 60 seconds while the ledger does not answer. PartUsed counts the
	// calls of the last 60 seconds without a grant.
	Part, PartUsed int
}
