package wire

import (
	"strings"
	"testing"
)

// rowOf returns the row of a JSON object, and a list to which the row adds the drift that it reports.
func rowOf(t *testing.T, text string) (*Row, *[]string) {
	t.Helper()
	v, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	return NewRow(v, func(what string) { notes = append(notes, what) }), &notes
}

// TestBalanceTotals checks the total of a balance if the venue sends a total, and if it does not. A balance without any amount, or
// with an unreadable amount, must be bad.
func TestBalanceTotals(t *testing.T) {
	for text, want := range map[string]string{
		`{"portfolioValue":5,"cashBalance":2,"positionsValue":3,"totalValue":9}`: "9",
		`{"portfolioValue":5,"cashBalance":2,"positionsValue":3}`:                "5",
		`{"portfolioValue":5,"cashBalance":2.50}`:                                "7.5",
		`{"positionsValue":3,"cash":"2"}`:                                        "5",
		`{"portfolioValue":5}`:                                                   "-",
		`{"cashBalance":5}`:                                                      "-",
		`{"totalValue":5}`:                                                       "5",
	} {
		r, _ := rowOf(t, text)
		got := "-"
		if b := r.Balance(); b.TotalValue != nil {
			got = b.TotalValue.String()
		}
		if got != want || r.Err != nil {
			t.Errorf("the balance %s has the total %s and the error %v, want the total %s", text, got, r.Err, want)
		}
	}
	for _, text := range []string{`{}`, `{"lastUpdated":1764000000}`, `{"cashBalance":"much"}`} {
		r, _ := rowOf(t, text)
		if r.Balance(); r.Err == nil {
			t.Errorf("the balance %s is not bad", text)
		}
	}
}

// TestRequiredFields checks that a row is bad if a required field is missing or invalid. The error must name the field.
func TestRequiredFields(t *testing.T) {
	const position, order, trade = `"marketId":"M","outcome":"YES","size":1`, `"orderId":"O","marketId":"M","side":"BUY","outcome":"YES","price":0.5,"size":2,"filledSize":0`,
		`"tradeId":7,"tokenId":"T","side":"BUY","price":0.5,"size":1,"timestamp":1764000000`
	read := map[string]func(*Row){"position": func(r *Row) { r.Position() }, "order": func(r *Row) { r.Order() }, "trade": func(r *Row) { r.UserTrade() }}
	for _, tt := range []struct{ kind, text, want string }{
		{"position", position, ""}, {"order", order, ""}, {"trade", trade, ""},
		{"position", strings.Replace(position, `"marketId":"M",`, ``, 1), "marketId is missing"},
		{"position", strings.Replace(position, `"YES"`, `""`, 1), "outcome is missing"},
		{"position", strings.Replace(position, `"YES"`, `7`, 1), "outcome is missing"},
		{"position", strings.Replace(position, `:1`, `:"one"`, 1), "size is not a number"},
		{"position", strings.Replace(position, `,"size":1`, ``, 1), "size is missing"},
		{"position", strings.Replace(position, `"M"`, `"M\n"`, 1), "marketId is not an id"},
		{"order", strings.Replace(order, `"orderId":"O",`, ``, 1), "orderId is missing"},
		{"order", strings.Replace(order, `"side":"BUY",`, ``, 1), "side is missing"},
		{"order", strings.Replace(order, `"size":2`, `"size":-2`, 1), "size"},
		{"trade", strings.Replace(trade, `"tokenId":"T",`, ``, 1), "marketId is missing"},
		{"trade", strings.Replace(trade, `,"timestamp":1764000000`, ``, 1), "timestamp"},
		{"trade", strings.Replace(trade, `1764000000`, `0`, 1), "timestamp"},
	} {
		r, _ := rowOf(t, "{"+tt.text+"}")
		read[tt.kind](r)
		if got := r.Err; (got == nil) != (tt.want == "") || got != nil && !strings.HasPrefix(got.Error(), tt.want) {
			t.Errorf("the %s {%s} has the error %v, want %q", tt.kind, tt.text, got, tt.want)
		}
	}
	for text, fine := range map[string]bool{`{"price":0}`: true, `{"price":1}`: true, `{"price":1.02}`: false, `{"price":-0.1}`: false, `{}`: true} {
		r, _ := rowOf(t, text)
		if r.Unit(FieldPrice); (r.Err == nil) != fine {
			t.Errorf("Unit of %s set the error %v, want success: %t", text, r.Err, fine)
		}
		r, _ = rowOf(t, text)
		if r.Price(FieldPrice); (r.Err == nil) != (fine && text != `{}`) {
			t.Errorf("Price of %s set the error %v, want success: %t", text, r.Err, fine && text != `{}`)
		}
	}
	if r, _ := rowOf(t, `[]`); r.Err == nil {
		t.Error("the row of a list is not bad")
	}
	r, notes := rowOf(t, `{"outcome":7}`)
	if r.Text(FieldOutcome) != "" || len(*notes) != 1 || (*notes)[0] != "outcome unreadable" {
		t.Errorf("Text of an outcome that is a number reported the drift %v, want [outcome unreadable]", *notes)
	}
}
