package market

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestEnums(t *testing.T) {
	for _, tt := range []struct{ got, want any }{
		{ParseSide("BUY"), SideBuy}, {ParseSide("buy"), SideBuy}, {ParseSide("Sell"), SideSell},
		{ParseSide(""), SideUnknown}, {ParseSide("BUYS"), SideUnknown}, {ParseSide("UNKNOWN"), SideUnknown}, {ParseSide(" BUY"), SideUnknown},
		{ParseOrderStatus("live", Decimal{}), OrderOpen}, {ParseOrderStatus("Open", Decimal{}), OrderOpen}, {ParseOrderStatus("canceled", Decimal{}), OrderCancelled},
		{ParseOrderStatus("CANCELLED", Decimal{}), OrderCancelled}, {ParseOrderStatus("partially_filled", Decimal{}), OrderPartiallyFilled},
		{ParseOrderStatus("filled", Decimal{}), OrderFilled}, {ParseOrderStatus("expired", Decimal{}), OrderExpired}, {ParseOrderStatus("rejected", Decimal{}), OrderRejected},
		{ParseOrderStatus("OPEN", MustDecimal("0.000001")), OrderPartiallyFilled}, {ParseOrderStatus("live", MustDecimal("3")), OrderPartiallyFilled},
		{ParseOrderStatus("CANCELLED", MustDecimal("3")), OrderCancelled}, {ParseOrderStatus("paused", MustDecimal("3")), OrderUnknown},
		{ParseOrderStatus("paused", Decimal{}), OrderUnknown}, {ParseOrderStatus("", Decimal{}), OrderUnknown},
		{KindOfOutcome("yes"), OutcomeYes}, {KindOfOutcome("No"), OutcomeNo}, {KindOfOutcome("Up"), OutcomeOther}, {KindOfOutcome(""), OutcomeOther},
		{ParseStatus("active"), StatusOpen}, {ParseStatus("open"), StatusOpen}, {ParseStatus("Canceled"), StatusCancelled},
		{ParseStatus("cancelled"), StatusCancelled}, {ParseStatus("upcoming"), StatusUpcoming}, {ParseStatus("closed"), StatusClosed},
		{ParseStatus("disputed"), StatusDisputed}, {ParseStatus("resolved"), StatusResolved}, {ParseStatus("halted"), StatusUnknown}, {ParseStatus(""), StatusUnknown},
		{ParseHistoryKind("trade"), HistoryTrade}, {ParseHistoryKind("Deposit"), HistoryDeposit}, {ParseHistoryKind("withdrawal"), HistoryWithdrawal},
		{ParseHistoryKind("split"), HistorySplit}, {ParseHistoryKind("merge"), HistoryMerge}, {ParseHistoryKind("redeem"), HistoryRedeem},
		{ParseHistoryKind("fee"), HistoryFee}, {ParseHistoryKind("reward"), HistoryReward}, {ParseHistoryKind("transfer"), HistoryTransfer},
		{ParseHistoryKind("Conversion"), HistoryConversion}, {ParseHistoryKind("airdrop"), HistoryUnknown}, {ParseHistoryKind(""), HistoryUnknown},
	} {
		if tt.got != tt.want {
			t.Errorf("got the enum value %v, want %v", tt.got, tt.want)
		}
	}
}

func TestDate(t *testing.T) {
	for s, days := range map[string]Date{"1970-01-01": 0, "1970-01-02": 1, "1969-12-31": -1, "2024-02-29": 19782, "2100-03-01": 47541} {
		d, err := ParseDate(s)
		if err != nil || d != days || d.String() != s {
			t.Errorf("ParseDate(%q) = %d (%s), error %v; want %d", s, d, d, err, days)
		}
		if start := d.Start(); start.Location() != time.UTC || DateOf(start) != d || DateOf(start.Add(-time.Nanosecond)) != d-1 || DateOf(start.Add(24*time.Hour-1)) != d {
			t.Errorf("Start of %s returned %s, which is not the first instant of the UTC day", s, start)
		}
	}
	east := time.FixedZone("east", 14*3600)
	if d := DateOf(time.Date(2024, 3, 1, 5, 0, 0, 0, east)); d.String() != "2024-02-29" {
		t.Errorf("DateOf a time in an eastern zone returned %s, want 2024-02-29", d)
	}
	for _, s := range []string{"", "2024-2-1", "2023-02-29", "2024-01-01T00:00:00Z", "01-01-2024", "2024-01-01 ", "20240101"} {
		if d, err := ParseDate(s); err == nil {
			t.Errorf("ParseDate(%q) = %s, want an error", s, d)
		}
	}
}

func TestParseAddress(t *testing.T) {
	const lower = "0x52908400098527886e0f7030069857d2e4169ee7"
	for _, s := range []string{lower, "0X52908400098527886E0F7030069857D2E4169EE7", "0x52908400098527886E0F7030069857D2E4169EE7"} {
		if a, err := ParseAddress(s); err != nil || a != lower {
			t.Errorf("ParseAddress(%q) = %q, %v; want %q", s, a, err, lower)
		}
	}
	for _, s := range []string{"", "0x", lower[2:], lower + "0", lower[:41], lower[:41] + "g", lower[:41] + "G", lower[:41] + "/", lower[:41] + ":", lower[:41] + "`", lower[:41] + "@", lower[:41] + "\x10", "1x" + lower[2:], lower[:40] + "é", " " + lower[1:]} {
		if a, err := ParseAddress(s); CodeOf(err) != CodeBadUserInput || a != "" {
			t.Errorf("ParseAddress(%q) = %q, %v; want BAD_USER_INPUT", s, a, err)
		}
	}
}

func TestCheckID(t *testing.T) {
	for _, id := range []string{"1", "tok-1_ä", strings.Repeat("x", MaxIDLength), "a b", "<a>", "a&b=c", "..", "%2f", "\u00a0", "\ufffd"} {
		if err := CheckID(id); err != nil {
			t.Errorf("CheckID(%q) = %v, want nil", id, err)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", MaxIDLength+1), "a,b", ",", "a/b", "/", "a\x00", "a\n", "\x1f", "a\x7f", "\u0080", "a\u0085", "\u009f", "\xff", "a\xc3"} {
		if CodeOf(CheckID(id)) != CodeBadUserInput {
			t.Errorf("CheckID(%q) did not return BAD_USER_INPUT", id)
		}
	}
}

const secretText = "s3cr3t-zzz"

func TestParseCredentials(t *testing.T) {
	parse := func(s string) *Credentials {
		t.Helper()
		c, err := ParseCredentials([]byte(s))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return c
	}
	pad := strings.Repeat("x", MaxCredentialsLength-len(`{"k":""}`))
	for _, in := range []string{
		`{"passphrase":"p","secret":"s","apiKey":"k"}`,
		`{ "key" : "k", "secret":"s" }`,
		`{"key":"k2","apiKey":"k"}`,
		`{"token":1234567890123456789,"ratio":1.50,"on":true,"none":null}`,
		`{"a":{"b":[{}]},"c":"}{[\"]["}`,
		`{"apiKey":"k","apiKey":"l"}`,
		`{"apiKey":"\u006b","address":7}`,
		`{"secret":"s","address":"me"}`,
		`{}`,
		`{"k":"` + pad + `"}`,
		`{"apiKey":"k","address":"0x52908400098527886E0F7030069857D2E4169EE7"}`,
	} {
		if c := parse("\r\n\t " + in + " \n"); c.Wire() != in {
			t.Errorf("Wire of %s returned %s", in, c.Wire())
		}
	}
	if a, ok := parse(`{"apiKey":"k","address":"0x52908400098527886E0F7030069857D2E4169EE7"}`).Address(); !ok || a != "0x52908400098527886e0f7030069857d2e4169ee7" {
		t.Errorf("got address %q, %v; want the address in lower case", a, ok)
	}
	for _, in := range []string{
		`{"apiKey":"k"}`, `{"address":"me"}`, `{"address":""}`, `{"address":null}`, `{"address":7}`,
		`{"Address":"0x52908400098527886E0F7030069857D2E4169EE7"}`, `{"a":{"address":"0x52908400098527886E0F7030069857D2E4169EE7"}}`,
	} {
		if a, ok := parse(in).Address(); ok || a != "" {
			t.Errorf("credentials %s: got address %q, want none", in, a)
		}
	}

	for name, in := range map[string]string{
		"too long":              `{"k":"x` + pad + `"}`,
		"too deep":              `{"a":[{"b":["` + secretText + `",[]]}]}`,
		"empty":                 ``,
		"null":                  `null`,
		"string":                `"` + secretText + `"`,
		"array":                 `["` + secretText + `"]`,
		"two objects":           `{"apiKey":"` + secretText + `"}{}`,
		"text after the object": `{"apiKey":"` + secretText + `"} x`,
		"cut after a value":     `{"apiKey":"` + secretText + `"`,
		"cut within a value":    `{"apiKey":"` + secretText,
		"cut within a key":      `{"apiKey`,
		"no value":              `{"apiKey"}`,
		"invalid UTF-8":         "{\"apiKey\":\"" + secretText + "\xff\"}",
		"a raw newline":         "{\"apiKey\":\"" + secretText + "\n\"}",
	} {
		c, err := ParseCredentials([]byte(in))
		if c != nil || CodeOf(err) != CodeBadUserInput {
			t.Errorf("%s: got %v, %v; want BAD_USER_INPUT", name, c, err)
		} else if strings.Contains(err.Error(), secretText) {
			t.Errorf("%s: the error quotes the input: %v", name, err)
		}
	}
}

// TestCredentialsDoNotPrint checks that no verb, encoder or logger prints credentials, alone or within other values.
func TestCredentialsDoNotPrint(t *testing.T) {
	c, err := ParseCredentials([]byte(`{"apiKey":"` + secretText + `k","secret":"` + secretText + `","passphrase":"` + secretText + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	type inside struct{ C *Credentials }
	type hidden struct{ c *Credentials }
	type hiddenValue struct{ c Credentials }
	values := []any{c, *c, inside{c}, &inside{c}, hidden{c}, &hidden{c}, hiddenValue{*c}, &hiddenValue{*c}, []*Credentials{c}, []Credentials{*c},
		map[string]*Credentials{"c": c}, map[string]any{"c": *c}}
	var printed []string
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T", "%o", "%p", "%c", "%U", "%e", "% x", "%10s", "%-40v"} {
			printed = append(printed, fmt.Sprintf(verb, v))
		}
		printed = append(printed, fmt.Sprint(v), fmt.Errorf("failed: %v", v).Error())
		if b, err := json.Marshal(v); err == nil {
			printed = append(printed, string(b))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "c", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "c", v, slog.Group("g", "c", v))
		printed = append(printed, log.String())
	}
	for _, s := range printed {
		hex := fmt.Sprintf("%x", secretText)
		if strings.Contains(s, secretText) || strings.Contains(strings.ToLower(strings.ReplaceAll(s, " ", "")), hex) {
			t.Errorf("the secret is printed in %s", s)
		}
	}
	if c.String() != redacted || c.GoString() != redacted || fmt.Sprintf("%x", c) != redacted || fmt.Sprint(*c) != redacted {
		t.Errorf("credentials print as %s, %#v, %x and %v; want the fixed text", c, c, c, *c)
	}
	if b, err := json.Marshal(c); err != nil || string(b) != `"`+redacted+`"` {
		t.Errorf("MarshalJSON returned %s, %v; want the fixed text", b, err)
	}
	var none *Credentials
	slog.New(slog.NewJSONHandler(io.Discard, nil)).Info("an anonymous caller", "c", none)
	_ = fmt.Sprint(none)
}

func TestErrors(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1: refused")
	plain := Errorf(CodeUpstreamUnavailable, "the venue is %s", "away")
	err := fmt.Errorf("reading prices: %w", plain.Because(cause))
	if plain.Err != nil {
		t.Error("Because changed its receiver")
	}
	if !errors.Is(err, cause) || CodeOf(err) != CodeUpstreamUnavailable {
		t.Errorf("the wrapped error %v has lost its cause or its code", err)
	}
	var e *Error
	if !errors.As(err, &e) || e.Message != "the venue is away" || !strings.Contains(e.Error(), "refused") {
		t.Errorf("got %+v, want the message %q and the cause", e, "the venue is away")
	}
	for _, tt := range []struct {
		err  error
		want Code
	}{
		{nil, ""}, {cause, CodeInternal}, {context.Canceled, CodeInternal},
		{fmt.Errorf("late: %w", context.DeadlineExceeded), CodeUpstreamTimeout},
		{Errorf(CodeForbidden, "no").Because(context.DeadlineExceeded), CodeForbidden},
	} {
		if got := CodeOf(tt.err); got != tt.want {
			t.Errorf("CodeOf(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}
