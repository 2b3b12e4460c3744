package httpapi

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// TestEventsForClientsThatHaveLeft checks that the Observer does not receive the failure of an event whose clients have left.
func TestEventsForClientsThatHaveLeft(t *testing.T) {
	var codes []string
	cfg := testConfig(t)
	cfg.Observer.EventFailed = func(failed []string) { codes = append(codes, failed...) }
	ctx, leave := context.WithCancel(t.Context())
	cut := &graphql.Response{Data: json.RawMessage(`{"a":null}`), Errors: gqlerror.List{{Message: "cut", Extensions: map[string]any{"code": "INTERNAL_SERVER_ERROR"}}}}
	e := newEngine(cfg, nil)
	if e.payload(ctx, cut) == nil || !slices.Equal(codes, []string{"INTERNAL_SERVER_ERROR"}) {
		t.Errorf("a failed event: the observer got the codes %q, want a payload and INTERNAL_SERVER_ERROR", codes)
	}
	leave()
	if got := e.payload(ctx, cut); got != nil || len(codes) != 1 {
		t.Errorf("a failed event after the clients left: the payload is %s and the observer got the codes %q, want no payload and no new code", got, codes)
	}
}
