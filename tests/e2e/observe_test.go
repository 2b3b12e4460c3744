package e2e

import (
	"context"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// TestAClientThatLeaves checks that the log reports a cancelled request as cancelled, and not as an internal error.
func TestAClientThatLeaves(t *testing.T) {
	s, gate := startGated(t)
	ctx, leave := context.WithCancel(t.Context())
	r := s.request(t, asJSON(vars{"query": `query Left { tokenPrices(tokenIds: ["` + s.openTokens(1)[0] + `"]) { price } }`}), anonymous).WithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := s.client.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	eventually(t, "the venue was asked", func() bool { return len(gate.heard()) == 1 })
	leave()
	<-ended
	eventually(t, "the operation is told to be cancelled", func() bool {
		return strings.Contains(s.log.String(), "name=Left") && strings.Contains(s.log.String(), "outcome="+reqctx.OutcomeCancelled)
	})
	if strings.Contains(s.log.String(), string(market.CodeInternal)) {
		t.Errorf("the log speaks of an internal error: %s", s.log)
	}
}
