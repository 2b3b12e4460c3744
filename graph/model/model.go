// Package model holds the Go types of the GraphQL schema. They wrap the domain's values and the context in which a value was
// read. Fields that need no read are methods here; fields that read are in package resolvers.
package model

import (
	"time"

	"oddsgraph/internal/market"
)

// Node is any object with a global id that the node field accepts.
type Node interface{ IsNode() }

// Freshness is the graph's view of a market.Meta.
type Freshness struct {
	AsOf       *time.Time
	ReceivedAt time.Time
	Source     market.Source
	Stale      bool
}

func freshness(m market.Meta) Freshness {
	return Freshness{AsOf: instant(&m.AsOf), ReceivedAt: m.ReceivedAt, Source: m.Source, Stale: m.Stale}
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
