package telemetry

import (
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// line is a line of the log that is written at once, as the handlers of slog would write it but for quotes that a text may
// be without. It is for texts of our own: nothing in it is redacted.
type line struct {
	buf  []byte
	json bool
}

var lines = sync.Pool{New: func() any { return &line{buf: make([]byte, 0, 512)} }}

// begin begins a line.
func (l *line) begin(at time.Time, level slog.Level, message string) {
	l.buf = append(l.buf[:0], '{')
	layout := time.RFC3339Nano
	if !l.json {
		l.buf, layout = l.buf[:0], "2006-01-02T15:04:05.000Z07:00"
	}
	l.key(slog.TimeKey)
	l.quote()
	l.buf = at.AppendFormat(l.buf, layout)
	l.quote()
	l.text(slog.LevelKey, level.String())
	l.text(slog.MessageKey, message)
}

// end ends the line and returns it, until the next one begins.
func (l *line) end() []byte {
	if l.json {
		l.buf = append(l.buf, '}')
	}
	l.buf = append(l.buf, '\n')
	return l.buf
}

// text adds an attribute.
func (l *line) text(key, value string) {
	l.key(key)
	switch {
	case isWord(value):
		l.quote()
		l.buf = append(l.buf, value...)
		l.quote()
	case l.json:
		l.buf, _ = jsontext.AppendQuote(l.buf, value) // what is no UTF-8 in it is replaced
	default:
		l.buf = strconv.AppendQuote(l.buf, value)
	}
}

// number adds an attribute.
func (l *line) number(key string, n int64) {
	l.key(key)
	l.buf = strconv.AppendInt(l.buf, n, 10)
}

// duration adds an attribute, in nanoseconds where the line is JSON.
func (l *line) duration(key string, d time.Duration) {
	if l.json {
		l.number(key, int64(d))
		return
	}
	l.text(key, d.String())
}

func (l *line) key(key string) {
	if !l.json {
		if len(l.buf) > 0 {
			l.buf = append(l.buf, ' ')
		}
		l.buf = append(append(l.buf, key...), '=')
		return
	}
	if len(l.buf) > 1 {
		l.buf = append(l.buf, ',')
	}
	l.buf = append(append(append(l.buf, '"'), key...), '"', ':')
}

// quote adds the quote that stands at either end of a text, where there is one.
func (l *line) quote() {
	if l.json {
		l.buf = append(l.buf, '"')
	}
}

// words are the bytes that stand for themselves in both formats.
var words = func() (t [256]bool) {
	for _, c := range "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+,-./:_" {
		t[c] = true
	}
	return t
}()

// isWord reports whether a text is written as it is.
func isWord(s string) bool {
	for i := range len(s) {
		if !words[s[i]] {
			return false
		}
	}
	return s != ""
}
