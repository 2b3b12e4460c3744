package generic

import (
	"fmt"
	"strings"
	"testing"

	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const marketRow = `{"marketId":"0x094e3a7da7d7800a578c8d5a4b8d%04d","slug":"which-company-leads-the-ranking-%[1]d",` +
	`"question":"Which company leads the ranking %[1]d?","groupItemTitle":null,` +
	`"description":"Which company leads the ranking %[1]d? This market resolves by the company's own announcement.\nTrading ends on September 17, 2026, 18:00 UTC.",` +
	`"image":"/images/which-company-leads-the-ranking-%[1]d.png","category":"Technology","tags":["technology","ai","rankings"],` +
	`"status":"OPEN","acceptingOrders":true,"outcomes":[` +
	`{"tokenId":"676472491478485%04[1]d","outcome":"Yes","price":0.415,"winner":null},{"tokenId":"259320337862941%04[1]d","outcome":"No","price":0.585,"winner":null}],` +
	`"startDate":"2026-04-02T18:00:00.000Z","endDate":"2026-09-17T18:00:00.000Z","volume":1357.31,"volume24h":0,"liquidity":2041.5,` +
	`"tickSize":0.01,"minOrderSize":1,"eventId":"10104","eventSlug":"which-company-leads","eventTitle":"Which company leads?",` +
	`"resolution":null,"updatedAt":"2026-09-01T12:30:15.250Z"}`

const positionRow = `{"marketId":"0x094e3a7da7d7800a578c8d5a4b8d%04d","tokenId":"676472491478485%04[1]d","outcome":"Yes","size":1057.5,` +
	`"avgPrice":0.7795,"currentPrice":0.771,"unrealizedPnl":-8.98875}`

const priceRow = `{"tokenId":"676472491478485%04d","price":0.415,"timestamp":"2026-09-01T12:30:15.250Z"}`

// answerOf returns the body of a response: an object with a list of n rows. key is the name of the list.
func answerOf(key, row string, n int) []byte {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(row, i)
	}
	return []byte(`{"` + key + `":[` + strings.Join(rows, ",") + `]}`)
}

// idsOf returns the ids of the first n rows of answerOf, in the given format.
func idsOf(format string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf(format, i)
	}
	return ids
}

// BenchmarkDecode measures the decoding of the responses for a portfolio of 50 positions.
func BenchmarkDecode(b *testing.B) {
	b.Run("positions", func(b *testing.B) {
		body := answerOf("positions", positionRow, 50)
		c := decoding(b, body)
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			payload, err := c.Get(b.Context(), &rest.Request{Endpoint: reqctx.EndpointPositions})
			if err != nil {
				b.Fatal(err)
			}
			var n rest.Drift
			list, _ := rest.RowsOf(payload, "positions")
			if good, bad := rest.ReadRows(list.Rows, n.Add, (*wire.Row).Position); len(good) != 50 || len(bad) > 0 {
				b.Fatal(len(good), bad)
			}
		}
	})
	b.Run("markets", func(b *testing.B) {
		body, ids := answerOf("markets", marketRow, 25), idsOf("0x094e3a7da7d7800a578c8d5a4b8d%04d", 25)
		c := decoding(b, body)
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			payload, err := c.Get(b.Context(), &rest.Request{Endpoint: reqctx.EndpointMarketsByID})
			if err != nil {
				b.Fatal(err)
			}
			var n rest.Drift
			if got, err := decodeMarketsByID(payload, ids, &n); err != nil || len(got.byID) != 25 || len(n) > 0 {
				b.Fatal(len(got.byID), err, n)
			}
		}
	})
	b.Run("prices", func(b *testing.B) {
		body, ids := answerOf("prices", priceRow, 50), idsOf("676472491478485%04d", 50)
		c := decoding(b, body)
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			payload, err := c.Get(b.Context(), &rest.Request{Endpoint: reqctx.EndpointPrices})
			if err != nil {
				b.Fatal(err)
			}
			var n rest.Drift
			if got, err := priceDecoder.decode(payload, ids, &n); err != nil || len(got.byID) != 50 || len(n) > 0 {
				b.Fatal(len(got.byID), err, n)
			}
		}
	})
}
