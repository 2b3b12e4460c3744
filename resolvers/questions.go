package resolvers

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/loaders"
)

// QuestionFile has the questions of a file, which may change. It is safe for concurrent use.
type QuestionFile struct {
	version atomic.Pointer[questionVersion]
}

// questionVersion is a version of the file. The handle is valid until the next version replaces it.
type questionVersion struct {
	*questions.Set
	handle *reads.Handle
}

// Replace replaces the questions. Call it before all other methods. Cached responses with questions of the previous version are not sent
// again.
func (f *QuestionFile) Replace(s *questions.Set) {
	if old := f.version.Swap(&questionVersion{s, reads.NewStreamHandle(&reads.Session{})}); old != nil {
		old.handle.Invalidate()
	}
}

// Len returns the number of questions.
func (f *QuestionFile) Len() int { return len(f.version.Load().All()) }

// questions returns the questions for the response of ctx, which then depends on the version of the file.
func (r *Resolver) questions(ctx context.Context) *questions.Set {
	if r.QuestionFile == nil {
		return &questions.Set{}
	}
	v := r.QuestionFile.version.Load()
	request.From(ctx).Dependencies.Record(v.handle)
	return v.Set
}

func (r *queryResolver) Question(ctx context.Context, questionID string) (*model.Question, error) {
	q := r.questions(ctx).Find(questionID)
	if q == nil {
		return nil, nil
	}
	return object(ctx, model.Question{Question: q}), nil
}

func (r *queryResolver) Questions(ctx context.Context, query string, first *int, after *string) (*model.QuestionConnection, error) {
	if len(query) > 1000 {
		return nil, badInput("query has %d bytes; at most 1000 are accepted", len(query))
	}
	c, err := parsePageArguments(listHash("questions", query), first, after)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.ToLower(query))
	var found []*questions.Question
	for _, q := range r.questions(ctx).All() {
		title := strings.ToLower(q.Title)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(title, w) }) {
			found = append(found, q)
		}
	}
	p := cutPage(ctx, found, func(q **questions.Question) uint64 { return keyHash((*q).ID) }, c)
	nodes := questionsOf(p.items)
	edges := edgesOf(ctx, p, nodes, func(cursor string, node model.Question) model.QuestionEdge {
		return model.QuestionEdge{Cursor: cursor, Node: node}
	})
	return &model.QuestionConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: *p.total}, nil
}

func questionsOf(list []*questions.Question) []model.Question {
	out := make([]model.Question, len(list))
	for i, q := range list {
		out[i].Question = q
	}
	return out
}

func (r *tokenResolver) Questions(ctx context.Context, t *model.Token) ([]model.Question, error) {
	return questionsOf(r.questions(ctx).OfToken(t.TokenID)), nil
}

// Questions returns the questions in the order of the market's outcomes. A question has at most one of them as a leg.
func (r *marketResolver) Questions(ctx context.Context, m *model.Market) ([]model.Question, error) {
	set := r.questions(ctx)
	var found []*questions.Question
	for i := range m.Outcomes {
		found = append(found, set.OfToken(m.Outcomes[i].TokenID)...)
	}
	return questionsOf(found), nil
}

func (r *questionResolver) Legs(_ context.Context, q *model.Question) ([]model.QuestionLeg, error) {
	out := make([]model.QuestionLeg, len(q.Question.Legs))
	for i := range out {
		out[i] = r.leg(q, i)
	}
	return out, nil
}

// leg returns the leg of a question with an index.
func (r *Resolver) leg(q *model.Question, i int) model.QuestionLeg {
	v := r.venueOf(q.Question.Legs[i].Token)
	l := model.QuestionLeg{Leg: q.Question.Legs[i], Venue: v.Title, Currency: v.Currency}
	if q.State != nil {
		l.State = &q.State[i]
	}
	return l
}

func (r *questionLegResolver) Market(ctx context.Context, l *model.QuestionLeg) (*model.Market, error) {
	read, err := legMarket(ctx, l)
	if err != nil || read.Value == nil {
		return nil, err
	}
	return object(ctx, model.Market{Market: read.Value, Meta: read.Meta}), nil
}

func (r *questionLegResolver) Rules(ctx context.Context, l *model.QuestionLeg) (model.RulesState, error) {
	read, err := legMarket(ctx, l)
	if err == loaders.ErrPending {
		return model.RulesStateUnknown, err
	}
	return rulesOf(&l.Leg, read), nil // UNKNOWN after an error
}

// legMarket returns the market of a leg: that of the event, or else a fresh one.
func legMarket(ctx context.Context, l *model.QuestionLeg) (reads.Value[*market.Market], error) {
	if l.State != nil {
		return l.State.Market.Value, l.State.Market.Err
	}
	return freshMarket(loaders.From(ctx), l.Leg.Token)
}
