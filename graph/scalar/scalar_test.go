package scalar

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"oddsgraph/internal/market"
)

func marshalText(m graphql.Marshaler) string {
	var b bytes.Buffer
	m.MarshalGQL(&b)
	return b.String()
}

func TestDecimal(t *testing.T) {
	for _, test := range []struct {
		in   any
		want string
	}{
		{"0.65", `"0.65"`}, {"0.650", `"0.650"`}, {json.Number("1e-7"), `"0.0000001"`}, {json.Number("1e3"), `"1000"`}, {int64(-5), `"-5"`}, {7, `"7"`},
		{0.1, `"0.1"`}, {1e21, `"1000000000000000000000"`}, {"-0", `"0"`}, {"0e5", `"0"`}, {"+1", `"1"`}, {".5", `"0.5"`}, {strings.Repeat("9", 64), `"` + strings.Repeat("9", 64) + `"`},
	} {
		d, err := UnmarshalDecimal(test.in)
		if err != nil {
			t.Errorf("UnmarshalDecimal(%v) returned the error %v", test.in, err)
			continue
		}
		if got := marshalText(MarshalDecimal(d)); got != test.want {
			t.Errorf("%v is written as %s, want %s", test.in, got, test.want)
		}
	}
	for _, bad := range []any{nil, true, []any{"1"}, map[string]any{}, "", "x", "1,5", "1 ", "NaN", "-Infinity", "1e65", "1e-65", "0x1", "1_000", strings.Repeat("9", 65)} {
		if d, err := UnmarshalDecimal(bad); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("UnmarshalDecimal(%v) = %v with the error %v, want %s", bad, d, err, market.CodeBadUserInput)
		}
	}
}

func TestDateTime(t *testing.T) {
	for in, want := range map[string]string{
		"2026-01-31T12:00:00Z": `"2026-01-31T12:00:00.000Z"`, "2026-01-31T12:00:00.123456Z": `"2026-01-31T12:00:00.123Z"`,
		"2026-01-31T12:00:00+02:00": `"2026-01-31T10:00:00.000Z"`, "2026-01-01T00:30:00+01:00": `"2025-12-31T23:30:00.000Z"`,
		"0001-01-01T00:00:00Z": `"0001-01-01T00:00:00.000Z"`, "9999-12-31T23:59:59.9999999Z": `"9999-12-31T23:59:59.999Z"`,
		"0000-12-31T23:00:00-01:00": `"0001-01-01T00:00:00.000Z"`,
	} {
		at, err := UnmarshalDateTime(in)
		if got := marshalText(MarshalDateTime(at)); err != nil || got != want || at.Location() != time.UTC {
			t.Errorf("%s is read in the zone %v and written as %s with the error %v, want %s", in, at.Location(), got, err, want)
		}
	}
	for n := range int64(1000) {
		at := time.Unix(n*86_313_597-40_000_000_000, n*1_000_003%int64(time.Second))
		if got, want := string(AppendDateTime(nil, at)), `"`+at.UTC().Format("2006-01-02T15:04:05.000Z07:00")+`"`; got != want {
			t.Fatalf("AppendDateTime(%v) = %s, want %s", at, got, want)
		}
	}
	elsewhere := time.Date(2026, 1, 31, 12, 0, 0, 5e6, time.FixedZone("x", -3600))
	if got := marshalText(MarshalDateTime(elsewhere)); got != `"2026-01-31T13:00:00.005Z"` {
		t.Errorf("a time in another zone is written as %s", got)
	}
	for _, bad := range []any{nil, 5, json.Number("1700000000"), "", "2026-01-31", "2026-01-31T12:00:00", "0000-01-01T00:00:00Z", "2026-02-30T00:00:00Z",
		"9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+05:00"} /* years 10000 and 0 in UTC */ {
		if at, err := UnmarshalDateTime(bad); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("UnmarshalDateTime(%v) = %v with the error %v, want %s", bad, at, err, market.CodeBadUserInput)
		}
	}
}

func TestDate(t *testing.T) {
	for _, day := range []string{"2026-01-31", "1970-01-01", "1969-12-31", "2024-02-29"} {
		d, err := UnmarshalDate(day)
		if got := marshalText(MarshalDate(d)); err != nil || got != `"`+day+`"` {
			t.Errorf("the day %s is written as %s with the error %v", day, got, err)
		}
	}
	for _, bad := range []any{nil, 20260131, "", "2026-1-31", "2026-02-29", "2026-01-31T00:00:00Z", "31.01.2026"} {
		if d, err := UnmarshalDate(bad); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("UnmarshalDate(%v) = %v with the error %v, want %s", bad, d, err, market.CodeBadUserInput)
		}
	}
}

func TestAddress(t *testing.T) {
	const want = `"0xabcdef0123456789abcdef0123456789abcdef01"`
	for _, in := range []string{"0xabcdef0123456789abcdef0123456789abcdef01", "0XABCDEF0123456789abcdef0123456789ABCDEF01"} {
		a, err := UnmarshalAddress(in)
		if got := marshalText(MarshalAddress(a)); err != nil || got != want {
			t.Errorf("the address %s is written as %s with the error %v, want %s", in, got, err, want)
		}
	}
	for _, bad := range []any{nil, 5, "", "0x", "abcdef0123456789abcdef0123456789abcdef0101", "0xgbcdef0123456789abcdef0123456789abcdef01", "0xabcdef0123456789abcdef0123456789abcdef0"} {
		if a, err := UnmarshalAddress(bad); market.CodeOf(err) != market.CodeBadUserInput {
			t.Errorf("UnmarshalAddress(%v) = %v with the error %v, want %s", bad, a, err, market.CodeBadUserInput)
		}
	}
}
