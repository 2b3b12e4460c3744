// Package questions compares one question on several venues. A person has confirmed in a file that the tokens of different venues are
// the same bet. The package has these questions, and merges the order books of their tokens. It makes no call and never looks for
// pairs.
package questions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"oddsgraph/internal/market"
)

// Match is how closely the legs of a question agree.
type Match string

// The matches. Only the prices of Exact legs are comparable. The legs of Near have the same headline, and the differences of their
// rules are listed. The legs of Related are never compared.
const (
	Exact   Match = "EXACT"
	Near    Match = "NEAR"
	Related Match = "RELATED"
)

// UnmarshalText accepts no other text than a match.
func (m *Match) UnmarshalText(text []byte) error {
	if *m = Match(text); *m != Exact && *m != Near && *m != Related {
		return errors.New("must be EXACT, NEAR or RELATED")
	}
	return nil
}

// Question is one question on several venues. It is immutable.
type Question struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Match Match  `json:"match"`
	// Differences say how the rules of the legs differ. Exact questions have none.
	Differences []string `json:"differences"`
	// CheckedAt is the day on which CheckedBy compared the rules. CheckedBy may be empty.
	CheckedAt market.Date `json:"checkedAt"`
	CheckedBy string      `json:"checkedBy"`
	// Legs has 2 to market.MaxVenues legs, each at another venue.
	Legs []Leg `json:"legs"`
}

// Leg is the token that stands for a question on one venue.
type Leg struct {
	// Token is the token's id in the graph, which begins with the name of a further venue.
	Token string `json:"token"`
	// RulesSHA256 is the RulesHash of the rules text that was compared. It is empty while nobody has confirmed the text.
	RulesSHA256 string `json:"rulesSha256"`
	// TakerFeeRate is the rate of the fee of Level, from 0 to 1. It is nil if the file states none.
	//
	// Kalshi documents 0.07 × contracts × price × (1 − price), with another rate for some series
	// (https://kalshi.com/docs/kalshi-fee-schedule.pdf). Polymarket documents shares × rate × price × (1 − price) with a rate for each
	// category of markets (https://docs.polymarket.com/trading/fees).
	TakerFeeRate *market.Decimal `json:"takerFeeRate,omitzero"`
}

// Set has the questions of a file. It is immutable. The zero Set is empty.
type Set struct {
	all     []*Question
	byID    map[string]*Question
	byToken map[string][]*Question
}

// NewSet returns the set of questions with different ids.
func NewSet(all ...Question) *Set {
	s := &Set{byID: make(map[string]*Question), byToken: make(map[string][]*Question)}
	for i := range all {
		q := &all[i]
		s.all, s.byID[q.ID] = append(s.all, q), q
		for _, l := range q.Legs {
			s.byToken[l.Token] = append(s.byToken[l.Token], q)
		}
	}
	return s
}

// All returns the questions in the order of the file. The slice must not be changed.
func (s *Set) All() []*Question { return s.all }

// Find returns the question with an id, or nil.
func (s *Set) Find(id string) *Question { return s.byID[id] }

// OfToken returns the questions that have a token as a leg, in the order of the file.
func (s *Set) OfToken(token string) []*Question { return s.byToken[token] }

// RulesHash returns the SHA-256 of a market's rules text in lower-case hexadecimal. The text is hashed as the venue sends it, and
// nothing is normalised: a change of one space is a change of the rules, which a person has to look at.
func RulesHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
