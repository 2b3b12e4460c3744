package e2e

import (
	"net/http"
	"net/url"
	"testing"
)

// TestSettlement checks positions in markets that are resolved in several ways. All fields of a position must agree.
func TestSettlement(t *testing.T) {
	markets := map[string]string{
		"late":     `{"marketId":"late","closed":true,"active":true,"resolution":"YES","tokens":[{"token_id":"T1","outcome":"YES","winner":false},{"token_id":"T2","outcome":"NO","winner":false}]}`,
		"void":     `{"marketId":"void","status":"RESOLVED","outcomes":[{"tokenId":"T3","outcome":"YES","winner":false},{"tokenId":"T4","outcome":"NO","winner":false}]}`,
		"refunded": `{"marketId":"refunded","status":"RESOLVED","outcomes":[{"tokenId":"T5","outcome":"YES","winner":false},{"tokenId":"T6","outcome":"NO","winner":false}],"resolution":{"outcome":"REFUND"}}`,
		"flagged":  `{"marketId":"flagged","status":"RESOLVED","outcomes":[{"tokenId":"T7","outcome":"YES","winner":true},{"tokenId":"T8","outcome":"NO"}],"resolution":"NO"}`,
		"early":    `{"marketId":"early","status":"CLOSED","outcomes":[{"tokenId":"T9","outcome":"YES","winner":true},{"tokenId":"T0","outcome":"NO","winner":false}]}`,
	}
	rows := map[string]object{}
	for id, text := range markets {
		var m object
		decode(t, text, &m)
		rows[id] = m
	}
	prices := map[string]object{}
	for _, token := range []string{"T1", "T2", "T3", "T5", "T7", "T8", "T9"} {
		prices[token] = object{"tokenId": token, "price": 0.5}
	}
	v := newStub(t, map[string]func(q url.Values) (int, any){
		"positions": func(url.Values) (int, any) {
			return http.StatusOK, `{"positions":[
				{"marketId":"late","tokenId":"T1","outcome":"YES","size":10,"avgPrice":0.4,"currentPrice":1},
				{"marketId":"late","tokenId":"T2","outcome":"NO","size":10,"avgPrice":0.4,"currentPrice":0},
				{"marketId":"void","tokenId":"T3","outcome":"YES","size":10,"avgPrice":0.4,"currentPrice":0.5},
				{"marketId":"refunded","tokenId":"T5","outcome":"YES","size":10,"avgPrice":0.4},
				{"marketId":"flagged","tokenId":"T7","outcome":"YES","size":10,"avgPrice":0.4},
				{"marketId":"flagged","tokenId":"T8","outcome":"NO","size":10,"avgPrice":0.4},
				{"marketId":"early","tokenId":"T9","outcome":"YES","size":10,"avgPrice":0.4}]}`
		},
		"balance": func(url.Values) (int, any) {
			return http.StatusOK, `{"portfolioValue":35,"cashBalance":0,"totalValue":35}`
		},
		"orders":         func(url.Values) (int, any) { return http.StatusOK, `{"orders":[]}` },
		"market-details": pick("markets", "ids", "id", rows),
		"prices":         pick("prices", "tokenIds", "tokenId", prices),
	})
	s := start(t, "--venue-url="+v.URL)
	data := s.ask(t, `{ user(address: "`+addressOfAny+`") {
	  portfolio { positionsValue unrealizedPnl unpricedPositions }
	  positions { nodes { redeemable valuation { price basis } token { winner } market { status resolution { winningOutcome winningToken { tokenId } } } } }
	} }`, nil, keyOfAny)
	resolution := func(outcome, token string) string {
		if token != "null" {
			token = `{"tokenId":"` + token + `"}`
		}
		return `{"status":"RESOLVED","resolution":{"winningOutcome":` + outcome + `,"winningToken":` + token + `}}`
	}
	for i, want := range []string{
		`{"redeemable":true,"valuation":{"price":"1","basis":"SETTLEMENT"},"token":{"winner":true},"market":` + resolution(`"YES"`, "T1") + `}`,
		`{"redeemable":false,"valuation":{"price":"0","basis":"SETTLEMENT"},"token":{"winner":false},"market":` + resolution(`"YES"`, "T1") + `}`,
		`{"redeemable":null,"valuation":{"price":"0.5","basis":"VENUE"},"token":{"winner":null},"market":` + resolution("null", "null") + `}`,
		`{"redeemable":null,"valuation":{"price":"0.5","basis":"VENUE"},"token":{"winner":null},"market":` + resolution(`"REFUND"`, "null") + `}`,
		`{"redeemable":true,"valuation":{"price":"1","basis":"SETTLEMENT"},"token":{"winner":true},"market":` + resolution(`"YES"`, "T7") + `}`,
		`{"redeemable":false,"valuation":{"price":"0","basis":"SETTLEMENT"},"token":{"winner":false},"market":` + resolution(`"YES"`, "T7") + `}`,
		`{"redeemable":false,"valuation":{"price":"0.5","basis":"VENUE"},"token":{"winner":null},"market":{"status":"CLOSED","resolution":null}}`,
	} {
		wantJSON(t, "position "+string(rune('1'+i)), list(data, "user.positions.nodes")[i], want)
	}
	wantJSON(t, "portfolio", at(data, "user.portfolio"), `{"positionsValue":"35","unrealizedPnl":"7","unpricedPositions":0}`)
	for redeemable, want := range map[string]string{"true": "2", "false": "3"} {
		data := s.ask(t, `{ user(address: "`+addressOfAny+`") { positions(redeemable: `+redeemable+`) { totalCount } } }`, nil, keyOfAny)
		wantJSON(t, "the number of positions with redeemable: "+redeemable, at(data, "user.positions.totalCount"), want)
	}
}
