package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestALineIsThatOfSlog for every kind of attribute, in both formats.
func TestALineIsThatOfSlog(t *testing.T) {
	at := time.Date(2026, 3, 14, 1, 2, 3, 456789000, time.FixedZone("", 3600))
	for _, text := range []string{
		"word", "BAD_USER_INPUT,INTERNAL", "2026-03-14T01:02:03.5+01:00", "", "two words", "a=b", `"quoted"`, `back\slash`, "line\nand\ttab", "\x00\x1f\x7f", "{}", "'", "<&>",
		"[redacted]", "a\xffb", "é 🏃", "\u2028",
	} {
		attrs := []slog.Attr{
			slog.String("text", text), slog.Int64("number", -7), slog.Duration("short", 1500*time.Microsecond), slog.Duration("none", 0), slog.Duration("long", time.Hour),
		}
		record := slog.NewRecord(at, slog.LevelWarn, "operation", 0)
		record.AddAttrs(attrs...)
		for _, asJSON := range []bool{false, true} {
			var want bytes.Buffer
			var h slog.Handler = slog.NewTextHandler(&want, nil)
			if asJSON {
				h = slog.NewJSONHandler(&want, nil)
			}
			if err := h.Handle(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			l := &line{json: asJSON}
			l.begin(at, slog.LevelWarn, "operation")
			l.text("text", text)
			l.number("number", -7)
			l.duration("short", 1500*time.Microsecond)
			l.duration("none", 0)
			l.duration("long", time.Hour)
			got := string(l.end())
			if strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
				t.Errorf("%q is not one line", got)
			}
			quoted := strings.Replace(want.String(), " text="+text+" ", " text="+strconv.Quote(text)+" ", 1)
			if !asJSON && got != want.String() && got != quoted { // quotes that need not be there are no harm
				t.Errorf("got  %swant %s", got, &want)
			}
			if asJSON {
				var a, b any
				if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal(want.Bytes(), &b) != nil || !reflect.DeepEqual(a, b) {
					t.Errorf("got  %swant %s", got, &want)
				}
			}
		}
	}
}
