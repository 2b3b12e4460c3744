package model

import (
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
)

// Question is a question on several venues. State has the states of its legs in an event of a subscription. It is nil if no event
// contained the question; resolvers then read the states.
type Question struct {
	*questions.Question
	State []reads.Leg
}

// ID returns a key for the caches of clients.
func (q Question) ID() string { return EncodeID("Question", q.Question.ID) }

// QuestionID returns the id in the file.
func (q Question) QuestionID() string { return q.Question.ID }

// Differences returns how the legs differ.
func (q Question) Differences() []string { return append([]string{}, q.Question.Differences...) }

// CheckedBy returns who compared the rules, or nil.
func (q Question) CheckedBy() *string { return text(&q.Question.CheckedBy) }

// QuestionLeg is the token of a question at a venue. State is nil if no event contained the leg.
type QuestionLeg struct {
	questions.Leg
	Venue    string
	Currency *string
	State    *reads.Leg
}

// Token returns the leg's token.
func (l QuestionLeg) Token() Token {
	return Token{TokenID: l.Leg.Token, Preloaded: &Preloaded{Leg: l.State}}
}

// QuestionQuote is the best price of a question for a taker. Meta is that of the compared data.
type QuestionQuote struct {
	questions.Level
	Leg        QuestionLeg
	Comparable bool
	Meta       reads.Meta
}

// Freshness returns the age of the compared data.
func (q QuestionQuote) Freshness() Freshness { return freshness(q.Meta) }

// QuestionOrderbook has the levels of the books of several legs. Missing are the names of the venues without a book. Meta is that of
// the compared data.
type QuestionOrderbook struct {
	questions.Book
	Missing    []string
	Crossed    bool
	Comparable bool
	Meta       reads.Meta
}

// Complete reports whether the book has the levels of all legs.
func (b QuestionOrderbook) Complete() bool { return len(b.Missing) == 0 }

// Freshness returns the age of the compared data.
func (b QuestionOrderbook) Freshness() Freshness { return freshness(b.Meta) }
