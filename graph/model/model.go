// Package model contains the Go types of the GraphQL schema. Most types contain a value of package market, and often the
// reads.Meta of this value. Package model computes the fields that need only these values. Package resolvers computes the other
// fields, which need another read.
package model

import (
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
)

// Node is any object with a global id that the node field accepts.
type Node interface{ IsNode() }

// Subgraph describes this service to the gateway of a federated graph.
type Subgraph struct{ SDL string }

// Freshness is a reads.Meta as clients see it.
type Freshness struct {
	AsOf       *time.Time
	ReceivedAt time.Time
	Source     market.Source
	Stale      bool
	Reason     *StaleReason
}

var staleReasons = [...]StaleReason{
	reads.CauseExpired: StaleReasonExpired, reads.CauseChanged: StaleReasonChanged, reads.CauseStreamDown: StaleReasonStreamDown,
	reads.CauseThrottled: StaleReasonThrottled, reads.CauseUpstreamDown: StaleReasonUpstreamDown,
}

func freshness(m reads.Meta) Freshness {
	f := Freshness{AsOf: instant(&m.AsOf), ReceivedAt: m.ReceivedAt, Source: m.Source, Stale: m.Stale}
	if m.Stale {
		f.Reason = &staleReasons[m.Cause]
	}
	return f
}

// text returns s, or nil if the string is empty, because an empty string means that the venue did not send the value.
func text(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}

// instant returns t, or nil for the zero time.
func instant(t *time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return t
}
