package resolvers

import (
	"context"

	"oddsgraph/graph/model"
)

func (r *subscriptionResolver) QuestionChanged(_ context.Context, questionID string, depth, maxPerSecond *int) (<-chan model.QuestionUpdate, error) {
	return nil, badInput("not yet")
}
