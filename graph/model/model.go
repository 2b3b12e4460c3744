// Package model contains the Go types of the GraphQL schema. A type contains a value of package market, and the facts about the
// read of this value that its fields need. A field that needs no read is a method in this package. A field that needs a read is a
// method in package resolvers.
package model

import (
	"time"

	"oddsgraph/internal/market"
)

// Node is any object with a global id that the node field accepts.
type Node interface{ IsNode() }

// Subgraph describes this service to the gateway of a federated graph.
type Subgraph struct{ SDL string }

// Freshness is the graph's view of a market.Meta.
type Freshness struct {
	AsOf       *time.Time
	ReceivedAt time.Time
	Source     market.Source
	Stale      bool
	Reason     *StaleReason
}

// staleReasons are the names of the causes in the graph.
var staleReasons = [...]StaleReason{
	market.CauseExpired: StaleReasonExpired, market.CauseChanged: StaleReasonChanged, market.CauseStreamDown: StaleReasonStreamDown,
	market.CauseThrottled: StaleReasonThrottled, market.CauseUpstreamDown: StaleReasonUpstreamDown,
}

func freshness(m market.Meta) Freshness {
	f := Freshness{AsOf: instant(&m.AsOf), ReceivedAt: m.ReceivedAt, Source: m.Source, Stale: m.Stale}
	if m.Stale {
		f.Reason = &staleReasons[m.Cause]
	}
	return f
}

// text returns nil for an empty string, which venues send for a missing value.
func text(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}

// instant returns nil for the zero time.
func instant(t *time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return t
}
