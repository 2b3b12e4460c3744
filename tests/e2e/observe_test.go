package e2e

import (
	"context"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// TestCancelledRequestIsLogged checks that the log reports a cancelled request as cancelled, and not as an internal error.
func TestCancelledRequestIsLogged(t *testing.T) {
	s, prices := startBlocked(t)
	ctx, leave := context.WithCancel(t.Context())
	r := s.request(t, asJSON(vars{"query": `query Left { tokenPrices(tokenIds: ["` + s.openTokens(1)[0] + `"]) { price } }`}), anonymous).WithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := s.client.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}()
	eventually(t, "the venue is called", func() bool { return len(prices.traceHeaders()) == 1 })
	leave()
	<-ended
	eventually(t, "the log has the operation with the outcome cancelled", func() bool {
		return strings.Contains(s.log.String(), "name=Left") && strings.Contains(s.log.String(), "outcome="+request.OutcomeCancelled)
	})
	if strings.Contains(s.log.String(), string(market.CodeInternal)) {
		t.Errorf("the log has an internal error: %s", s.log)
	}
}
