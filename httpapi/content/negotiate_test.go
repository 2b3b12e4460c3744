package content

import (
	"strings"
	"testing"
)

func TestResponseType(t *testing.T) {
	for _, test := range []struct {
		accept string // lines, separated by |
		want   string
	}{
		{"", JSON},
		{"*/*", JSON},
		{"application/*", JSON},
		{"application/json", JSON},
		{"APPLICATION/JSON", JSON},
		{"application/json; charset=utf-8", JSON},
		{"application/json; charset=UTF-8; q=0.5", JSON},
		{"application/json; charset=iso-8859-1", JSON},
		{"application/graphql-response+json;charset=ISO-8859-1", Response},
		{"application/graphql-response+json", Response},
		{"application/graphql-response+json; charset=utf-8, application/json; charset=utf-8", Response},
		{"application/graphql-response+json, application/json;q=0.9", Response},
		{"application/json, application/graphql-response+json", Response},
		{"application/json;q=0.9|application/graphql-response+json", Response},
		{"application/json, application/graphql-response+json;q=0.9", JSON},
		{"application/graphql-response+json, */*", Response},
		{"application/json, text/plain, */*", JSON},
		{"application/graphql-response+json;q=0, */*", JSON},
		{"application/json;q=0, */*", Response},
		{"application/json;q=0, application/*;q=0.1", Response},
		{"*/*;q=0", ""},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", JSON},
		{"text/html", ""},
		{"text/*", ""},
		{"multipart/mixed", ""},
		{"text/event-stream", ""},
		{"application/json;q=2", ""},
		{"application/json;q=-1", ""},
		{"application/json;q=NaN", ""},
		{"application/json;q=1e-1", ""},
		{"application/json;q=0.0001", ""}, // a quality may have at most three decimal places
		{"nonsense", ""},
		{";;;", ""},
		{", ,", JSON},
	} {
		var lines []string
		if test.accept != "" {
			lines = strings.Split(test.accept, "|")
		}
		if got := parseAccept(lines).response(); got != test.want {
			t.Errorf("Accept: %s gives the media type %q, want %q", test.accept, got, test.want)
		}
	}
}

// TestEventStreamsNeedARequest checks that only a client that names text/event-stream and accepts no JSON gets an event stream.
func TestEventStreamsNeedARequest(t *testing.T) {
	for accept, want := range map[string]bool{
		"text/event-stream": true, "text/event-stream;q=0.5": true, "text/event-stream, text/html": true, "text/event-stream, application/json;q=0": true,
		"text/event-stream, application/json": false, "text/event-stream, */*;q=0.1": false, "text/event-stream;q=0": false,
		"text/*": false, "*/*": false, "": false, "application/graphql-response+json, text/event-stream": false,
	} {
		var lines []string
		if accept != "" {
			lines = []string{accept}
		}
		if got := parseAccept(lines).events(); got != want {
			t.Errorf("Accept: %s gets an event stream: %v, want %v", accept, got, want)
		}
	}
}

func TestContentCoding(t *testing.T) {
	for accept, want := range map[string]string{
		"": "", "identity": "", "gzip": "gzip", "x-gzip": "gzip", "GZIP": "gzip", "br": "br", "zstd": "zstd",
		"gzip, deflate, br, zstd": "br", "gzip, deflate, br": "br", "gzip, deflate": "gzip", "deflate": "",
		"*": "br", "br;q=0, *": "zstd", "br;q=0.9, zstd": "zstd", "zstd, gzip": "zstd", "*;q=0": "", "gzip;q=0": "", "gzip;q=1.0, *;q=0": "gzip",
		"gzip;q=1, br;q=0.5, zstd;q=0.1": "gzip", "gzip;q=0.8, br;q=0.8": "br", "identity, gzip;q=0.5": "", "identity;q=0.5, gzip;q=0.5": "gzip",
		"identity;q=0": "", "identity;q=0, gzip;q=0.1": "gzip", "gzip ; q=0.5": "gzip", "gzip;q=x": "", "gzip;level=9": "",
		"br;q=0.001": "br",
	} {
		if got := Encoding([]string{accept}, Encodings); got != want {
			t.Errorf("Accept-Encoding: %s gives the coding %q, want %q", accept, got, want)
		}
	}
	if got := Encoding([]string{"gzip", "br"}, Encodings); got != "br" {
		t.Errorf("two lines with gzip and br give the coding %q, want br", got)
	}
}

// TestKnownAcceptHeaders checks that Negotiate and parseAccept have equal results for common headers, and that Negotiate
// allocates nothing for them.
func TestKnownAcceptHeaders(t *testing.T) {
	for _, header := range []string{
		"*/*", JSON, JSON + ", text/plain, */*", Response, Response + ", " + JSON, Response + ", " + JSON + ";q=0.9", Events,
	} {
		if got, want := Negotiate([]string{header}), parseAccept([]string{header}).accepted(); got != want {
			t.Errorf("%q gives %+v, want %+v", header, got, want)
		}
		if n := testing.AllocsPerRun(10, func() { Negotiate([]string{header}) }); n > 0 {
			t.Errorf("%q needs %.0f allocations, want 0", header, n)
		}
	}
	if got, want := Negotiate(nil), parseAccept(nil).accepted(); got != want {
		t.Errorf("no header gives %+v, want %+v", got, want)
	}
}

func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"*/*", "application/json;q=0.9, text/event-stream", "gzip;q=0, *", `a/b;c="d,e"`, "application/json; charset=utf-8"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a := parseAccept([]string{s})
		media := a.response()
		if media != "" && media != JSON && media != Response {
			t.Errorf("%q gives the type %q", s, media)
		}
		if q, _ := a.qualityOf(media); media != "" && q <= 0 {
			t.Errorf("%q gives the media type %s, which it does not accept", s, media)
		}
		if a.events() && media != "" {
			t.Errorf("%q gets both an event stream and the media type %s", s, media)
		}
		switch got := Encoding([]string{s}, Encodings); got {
		case "", "zstd", "br", "gzip":
		default:
			t.Errorf("%q gives the coding %q", s, got)
		}
	})
}
