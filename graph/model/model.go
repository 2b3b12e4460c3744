// Package model contains the Go types of the GraphQL schema. A type contains a value of package market, and often a market.Meta
// that describes the read of this value. A field that needs no further read is a method in this package. A field that needs one is
// a method in package resolvers.
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

// staleReasons maps the causes of package market to the values of the GraphQL enum StaleReason.
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

// text returns s, or nil if the string is empty. An empty string means that the value is missing.
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
