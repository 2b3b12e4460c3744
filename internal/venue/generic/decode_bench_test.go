package generic

import (
	"fmt"
	"strings"
	"testing"

	"oddsgraph/internal/upstream"
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

// idsOf formats the numbers from 0 to n-1 as ids.
func idsOf(format string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf(format, i)
	}
	return ids
}

// BenchmarkDecode measures the decoding of the responses for a portfolio of 50 positions.
func BenchmarkDecode(b *testing.B) {
	markets, tokens := idsOf("0x094e3a7da7d7800a578c8d5a4b8d%04d", 25), idsOf("676472491478485%04d", 50)
	for _, list := range []struct {
		name, row string
		rows      int
		endpoint  upstream.Endpoint
		// decode returns the number of values in the list.
		decode func(payload wire.Value, drift *rest.Drift) (int, error)
	}{
		{"positions", positionRow, 50, upstream.EndpointPositions, func(payload wire.Value, drift *rest.Drift) (int, error) {
			list, _ := rest.RowsOf(payload, "positions")
			good, _ := rest.ReadRows(list.Rows, drift.Add, (*wire.Row).Position)
			return len(good), nil
		}},
		{"markets", marketRow, 25, upstream.EndpointMarketsByID, func(payload wire.Value, drift *rest.Drift) (int, error) {
			got, err := decodeMarketsByID(payload, markets, drift.Add)
			return len(got), err
		}},
		{"prices", priceRow, 50, upstream.EndpointPrices, func(payload wire.Value, drift *rest.Drift) (int, error) {
			got, err := priceDecoder.decode(payload, tokens, drift.Add)
			return len(got), err
		}},
	} {
		b.Run(list.name, func(b *testing.B) {
			body := answerOf(list.name, list.row, list.rows)
			c := newDecodingClient(b, body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				payload, err := c.Get(b.Context(), upstream.Call{}, &rest.Request{Endpoint: list.endpoint})
				must(b, err)
				var drift rest.Drift
				if got, err := list.decode(payload, &drift); got != list.rows || err != nil || len(drift) > 0 {
					b.Fatal(got, err, drift)
				}
			}
		})
	}
}
