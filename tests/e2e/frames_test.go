package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"oddsgraph/app"
)

// TestFramesThatNameAMarket checks frames of the stream that name a market but no tokens. If the service has read the market
// before, it must assign the prices to the right tokens.
func TestFramesThatNameAMarket(t *testing.T) {
	t.Parallel()
	var marketID atomic.Value
	venue := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		for {
			_, frame, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			answer := `{"type":"pong"}`
			if strings.Contains(string(frame), `"subscribe"`) {
				answer = fmt.Sprintf(`{"type":"price_update","marketId":%q,"yesPrice":0.123,"noPrice":0.877}`, marketID.Load())
			}
			if conn.Write(r.Context(), websocket.MessageText, []byte(answer)) != nil {
				return
			}
		}
	}))
	t.Cleanup(venue.Close)
	s, stop := startLiveRigged(t, func(w *app.Wiring) { w.Stream.URL = strings.Replace(venue.URL, "http", "ws", 1) })
	defer stop()

	token := s.openTokens(1)[0]
	read := s.ask(t, `query($id: String!) { token(tokenId: $id) { market { marketId tokens { tokenId outcome } } } }`, vars{"id": token}, anonymous)
	marketID.Store(text(read, "token.market.marketId"))
	other := ""
	for _, o := range list(read, "token.market.tokens") {
		if id := text(o, "tokenId"); id != token {
			other = id
		}
	}
	prices := s.dial(t, anonymous).subscribe(t, `subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) { price { tokenId price freshness { source } } } }`, vars{"ids": []string{token, other}})
	want := map[string]string{token: "0.123", other: "0.877"}
	prices.until(t, "the price of both tokens", func(v any) bool {
		if id := text(v, "price.tokenId"); text(v, "price.freshness.source") == "STREAM" && text(v, "price.price") == want[id] {
			delete(want, id)
		}
		return len(want) == 0
	})
}
