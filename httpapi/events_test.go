package httpapi

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// failures is an Observer of failed events.
type failures struct {
	onEnd
	codes *[]string
}

func (f failures) EventFailed(codes []string) { *f.codes = append(*f.codes, codes...) }

// TestEventsForClientsThatHaveLeft checks that the Observer does not receive the failure of an event whose clients have left.
func TestEventsForClientsThatHaveLeft(t *testing.T) {
	var codes []string
	cfg := testConfig(t)
	cfg.Observer = failures{codes: &codes}
	ctx, leave := context.WithCancel(t.Context())
	cut := &graphql.Response{Data: json.RawMessage(`{"a":null}`), Errors: gqlerror.List{{Message: "cut", Extensions: map[string]any{"code": "INTERNAL_SERVER_ERROR"}}}}
	events := 0
	x := &execution{engine: newEngine(cfg, nil), ctx: ctx, next: func() (*graphql.Response, bool) {
		if events++; events == 2 {
			leave()
		}
		return cut, false
	}}
	if _, ok := x.Next(); !ok || !slices.Equal(codes, []string{"INTERNAL_SERVER_ERROR"}) {
		t.Errorf("a failed event: ok is %v and the observer got the codes %q, want true and INTERNAL_SERVER_ERROR", ok, codes)
	}
	if _, ok := x.Next(); ok || len(codes) != 1 {
		t.Errorf("a failed event after the clients left: ok is %v and the observer got the codes %q, want false and no new code", ok, codes)
	}
}
