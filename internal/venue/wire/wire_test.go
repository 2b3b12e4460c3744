package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func show(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339Nano)
}

// value encodes x as JSON and parses the JSON.
func value(t *testing.T, x any) Value {
	t.Helper()
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		in   any
		want string
		ok   bool
	}{
		{"2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z", true},
		{"2026-11-20T10:00:00.123456789Z", "2026-11-20T10:00:00.123456789Z", true},
		{"2026-11-20T12:00:00+02:00", "2026-11-20T10:00:00Z", true},
		{"2026-11-20T12:00:00+0200", "2026-11-20T10:00:00Z", true},
		{"2026-11-20T10:00:00", "2026-11-20T10:00:00Z", true},
		{"2026-05-09 02:07:01+00", "2026-05-09T02:07:01Z", true},
		{"2026-11-20", "2026-11-20T00:00:00Z", true},
		{"9999-12-31T23:59:59-12:00", "", false}, // the year 10000 in UTC
		{"0001-01-01T00:00:00+05:00", "", false}, // the year 0 in UTC
		{" 1763632800 ", "2025-11-20T10:00:00Z", true},
		{json.Number("1763632800"), "2025-11-20T10:00:00Z", true},
		{json.Number("1763632800.25"), "2025-11-20T10:00:00.25Z", true},
		{json.Number("1.7636328e9"), "2025-11-20T10:00:00Z", true},
		{json.Number("999999999999"), "", false},
		{json.Number("253402300799"), "9999-12-31T23:59:59Z", true}, // the last second of the year 9999
		{json.Number("253402300800"), "", false},
		{json.Number("253402300799.5"), "9999-12-31T23:59:59.5Z", true},
		{json.Number("253402300800.5"), "", false},
		{json.Number("999999999999.5"), "", false},
		{json.Number("1000000000000"), "2001-09-09T01:46:40Z", true},
		{json.Number("1e12"), "2001-09-09T01:46:40Z", true}, // the smallest number that counts as milliseconds, in exponent notation
		{json.Number("1000000000000.5"), "2001-09-09T01:46:40.0005Z", true},
		{json.Number("253402300799999.5"), "", false},
		{json.Number("253402300799999.0"), "9999-12-31T23:59:59.999Z", true},
		{json.Number("0.0"), "-", true},
		{json.Number("-0.5"), "", false},
		{json.Number("0.000001"), "1970-01-01T00:00:00.000001Z", true},
		{json.Number("0.9999999999"), "1970-01-01T00:00:01Z", true},
		{"1763632800123", "2025-11-20T10:00:00.123Z", true},
		{json.Number("1763632800123.5"), "2025-11-20T10:00:00.1235Z", true},
		{json.Number("253402300799999"), "9999-12-31T23:59:59.999Z", true},
		{json.Number("253402300800000"), "", false},
		{json.Number("0"), "-", true},
		{json.Number("-1"), "", false},
		{json.Number("0.5"), "1970-01-01T00:00:00.5Z", true},
		{json.Number("1e63"), "", false},
		{"now", "", false}, {"", "", false}, {nil, "", false}, {true, "", false}, {"0000-01-01T00:00:00Z", "", false}, {"NaN", "", false},
	} {
		got, ok := value(t, tt.in).Time()
		if ok != tt.ok || ok && show(got) != tt.want || !ok && !got.IsZero() {
			t.Errorf("the time of %v = %v, %v; want %s, %v", tt.in, got, ok, tt.want, tt.ok)
		}
		if ok && !got.IsZero() && got.Location() != time.UTC {
			t.Errorf("the time of %v is not in UTC", tt.in)
		}
	}
}

func TestDecimalsAreExact(t *testing.T) {
	for in, want := range map[string]string{
		`0.8100000092466668`: "0.8100000092466668", `25814545.294374414`: "25814545.294374414", `1e3`: "1000", `"0.650"`: "0.650",
		`" 7 "`: "7", `".5"`: "0.5", `-0`: "0", `123456789012345678901234567890.5`: "123456789012345678901234567890.5",
		`"NaN"`: "", `"Infinity"`: "", `1e65`: "", `"1,5"`: "", `"0x10"`: "", `true`: "", `{}`: "", `[1]`: "", `"x"`: "",
		`0.1234567890123456789012345678901234567890123456789012345678901234567`: "",
	} {
		v, err := Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		d, ok := v.Decimal()
		if ok != (want != "") || ok && d.String() != want {
			t.Errorf("Decimal of %s = %s, %v, want %q", in, d, ok, want)
		}
	}
}

func TestIDs(t *testing.T) {
	for in, want := range map[string]string{
		`"a"`: "a", `12345678901234567890123456789012345678`: "12345678901234567890123456789012345678", `"é ü"`: "é ü",
		`1.5`: "", `-1`: "", `1e3`: "", `"a,b"`: "", `"a/b"`: "", `true`: "", `{}`: "",
	} {
		v, err := Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := v.ID(); got != want || ok != (want != "") {
			t.Errorf("ID of %s = %q, %v, want %q", in, got, ok, want)
		}
	}
}

func TestNamesInSnakeCase(t *testing.T) {
	f := NewField("marketId", "size", "endDateIso")
	for _, name := range []string{"marketId", "market_id", "size", "endDateIso", "end_date_iso"} {
		if !f.Of(value(t, map[string]any{name: "x"})).Is("x") {
			t.Errorf("the field does not accept the name %s", name)
		}
	}
	if !f.Of(value(t, map[string]any{"marketId": nil, "market_id": "x"})).Is("x") {
		t.Error("the field does not skip a name whose value is null")
	}
}

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

// TestRowsShareIDs checks that rows of accounts share the memory of equal ids and outcomes.
func TestRowsShareIDs(t *testing.T) {
	row := func() *Row {
		v, err := Parse([]byte(`{"marketId": "0xaa", "tokenId": "71321", "outcome": "Yes", "size": "1", "price": "0.5", "orderId": "1", "side": "BUY", "timestamp": 1700000000}`))
		if err != nil {
			t.Fatal(err)
		}
		return NewRow(v, func(string) {})
	}
	texts := func() []string {
		p, o, trade := row().Position(), row().Order(), row().Trade()
		return []string{p.MarketID, p.TokenID, p.Outcome, o.MarketID, o.TokenID, o.Outcome, trade.MarketID, trade.TokenID, trade.Outcome}
	}
	first, again := texts(), texts()
	for i := range first {
		if first[i] == "" || unsafe.StringData(first[i]) != unsafe.StringData(again[i]) || first[i] != first[i%3] {
			t.Errorf("text %d of the rows is %q and %q, want equal texts that share memory", i, first[i], again[i])
		}
	}
}
