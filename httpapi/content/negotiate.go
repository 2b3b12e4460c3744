// Package content negotiates the media type and the content coding of responses, and compresses them.
package content

import (
	"iter"
	"mime"
	"slices"
	"strconv"
	"strings"
)

// JSON and Response are the media types of responses, and Events is the one of event streams.
const (
	JSON     = "application/json"
	Response = "application/graphql-response+json"
	Events   = "text/event-stream"
)

type mediaRange struct {
	name string // in lower case
	q    float64
}

// accepts lists the media ranges that a client accepts. The zero value accepts everything.
type accepts []mediaRange

// Accepted says what a client accepts.
type Accepted struct {
	// Media is the media type of the response. It is "" if the client accepts neither JSON nor Response.
	Media string
	// Events is true if the client accepts only an event stream.
	Events bool
}

// Negotiate evaluates the lines of an Accept header. It recognizes common headers without parsing.
func Negotiate(lines []string) Accepted {
	if len(lines) == 0 {
		return Accepted{Media: JSON}
	}
	if len(lines) == 1 {
		switch lines[0] {
		case "*/*", JSON, JSON + ", text/plain, */*":
			return Accepted{Media: JSON}
		case Response, Response + ", " + JSON, Response + ", " + JSON + ";q=0.9":
			return Accepted{Media: Response}
		case Events:
			return Accepted{Events: true}
		}
	}
	return parseAccept(lines).accepted()
}

func (a accepts) accepted() Accepted { return Accepted{a.response(), a.events()} }

// parseAccept parses the lines of an Accept header. It ignores malformed elements. A header with only malformed elements accepts
// nothing. An empty header accepts everything. A charset has no effect: JSON is always UTF-8 (RFC 8259), and older clients in Java
// name another charset.
func parseAccept(lines []string) accepts {
	var out accepts
	for element := range Elements(lines) {
		name, params, err := mime.ParseMediaType(element)
		q, ok := quality(params["q"])
		if err != nil || !ok {
			name = "" // matches no type
		}
		out = append(out, mediaRange{name, q})
	}
	return out
}

// qualityOf returns the quality of a media type, and how specific the matching range is. specific is 2 if the range is the media
// type itself, 1 for a range such as text/*, 0 for */*, and -1 if no range matches.
func (a accepts) qualityOf(media string) (q float64, specific int) {
	if a == nil {
		return 1, 0
	}
	family, _, _ := strings.Cut(media, "/")
	specific = -1
	for _, r := range a {
		n := -1
		switch r.name {
		case media:
			n = 2
		case family + "/*":
			n = 1
		case "*/*":
			n = 0
		}
		if n > specific {
			q, specific = r.q, n
		} else if n >= 0 && n == specific {
			q = max(q, r.q)
		}
	}
	return q, specific
}

// response returns the media type of responses: JSON, Response, or "" if the client accepts neither type. The type with the
// higher quality wins. At equal quality, the type that the client names wins. If the client names neither type, the result is
// JSON, as the specification requires. If the client names both types, the result is Response.
func (a accepts) response() string {
	legacy, legacyNamed := a.qualityOf(JSON)
	modern, modernNamed := a.qualityOf(Response)
	switch {
	case legacy <= 0 && modern <= 0:
		return ""
	case modern > legacy, modern == legacy && modernNamed == 2 && legacyNamed <= 2:
		return Response
	default:
		return JSON
	}
}

// events reports whether the client names the media type of event streams and accepts no other type of the service.
func (a accepts) events() bool {
	q, specific := a.qualityOf(Events)
	return q > 0 && specific == 2 && a.response() == ""
}

// Encodings are the content codings of responses, best first. zstd is not first, because some clients, such as graphql-codegen on
// Node.js 20, accept zstd but cannot decode it.
var Encodings = []string{"br", "zstd", "gzip"}

// Encoding returns the content coding for the lines of an Accept-Encoding header. It chooses the offered coding with the
// highest quality. At equal quality, it chooses the coding that is first in Encodings. The result is "" (no content coding) if the
// client accepts no offered coding, or gives identity a higher quality than every offered coding.
func Encoding(lines, offered []string) string {
	const unset = -1
	qs, all, identity := [3]float64{unset, unset, unset}, float64(unset), float64(unset)
	for element := range Elements(lines) {
		name, rest, _ := strings.Cut(element, ";")
		q := 1.0
		if rest = strings.TrimSpace(rest); rest != "" {
			value, found := strings.CutPrefix(strings.ToLower(rest), "q=")
			var ok bool
			if q, ok = quality(value); !found || !ok {
				continue
			}
		}
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "*":
			all = q
		case "identity":
			identity = q
		case "x-gzip":
			qs[2] = max(qs[2], q)
		default:
			if i := slices.Index(Encodings, name); i >= 0 {
				qs[i] = q
			}
		}
	}
	best, encoding := max(identity, 0), "" // identity is acceptable even if the client does not name it
	for i, q := range qs {
		if !slices.Contains(offered, Encodings[i]) {
			continue
		}
		if q == unset {
			q = all
		}
		if q > best || q > 0 && q == best && encoding == "" {
			best, encoding = q, Encodings[i]
		}
	}
	return encoding
}

// quality parses a q-value. "" means 1. The second result is false if the value is invalid.
func quality(s string) (float64, bool) {
	if s == "" {
		return 1, true
	}
	if len(s) > 5 || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	q, err := strconv.ParseFloat(s, 64)
	return q, err == nil && q >= 0 && q <= 1
}

// IsUTF8 reports whether the parameters of a media type contain the charset UTF-8 or no charset.
func IsUTF8(params map[string]string) bool {
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// Elements yields the elements of a list header. It also splits at commas within quotes, which no known client sends.
func Elements(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for element := range strings.SplitSeq(line, ",") {
				if element = strings.TrimSpace(element); element != "" && !yield(element) {
					return
				}
			}
		}
	}
}
