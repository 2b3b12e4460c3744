package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oddsgraph/internal/telemetry"
)

const secret = "hunter2"

// line runs the function write with a logger of each format, and returns the output of both loggers.
func line(write func(*slog.Logger)) string {
	var out bytes.Buffer
	for _, format := range []string{"text", "json"} {
		write(telemetry.NewLogger(&out, slog.LevelDebug, format))
	}
	return out.String()
}

type wallet struct {
	ApiKey  string
	Address string
}

type account struct{ Wallet *wallet }

// digits is a numeric secret.
const digits = "7300419265"

func TestNoSecretIsLogged(t *testing.T) {
	withUser := &url.URL{Scheme: "https", User: url.UserPassword("u", secret), Host: "venue.example", Path: "/a"}
	failed := &url.Error{Op: "Get", URL: "https://venue.example/api/user/orders?address=0x1&credentials=%7B%22" + secret + "%22%7D", Err: errors.New("refused")}
	for name, attr := range map[string]slog.Attr{
		"credentials":              slog.String("credentials", secret),
		"Authorization":            slog.String("Authorization", "Bearer "+secret),
		"apiKey":                   slog.String("apiKey", secret),
		"API_KEY":                  slog.String("API_KEY", secret),
		"secret":                   slog.String("secret", secret),
		"client-secret":            slog.String("client-secret", secret),
		"passphrase":               slog.Any("passphrase", []string{secret}),
		"token":                    slog.String("token", secret),
		"access_token":             slog.String("access_token", secret),
		"Set-Cookie":               slog.String("Set-Cookie", secret),
		"x-venue-credentials":      slog.String("x-venue-credentials", secret),
		"object named credentials": slog.Any("credentials", map[string]string{"a": secret}),
		"group named credentials":  slog.Group("credentials", "a", secret, slog.Group("b", "c", secret)),
		"attribute in two groups":  slog.Group("request", slog.Group("headers", "cookie", secret)),
		"URL with user info":       slog.String("url", "https://u:"+secret+"@venue.example/a"),
		"URL with credentials":     slog.String("url", "https://venue.example/a?credentials="+secret+"&b=c"),
		"URL with key":             slog.String("url", "wss://venue.example/a?key="+secret),
		"URL with fragment":        slog.String("url", "https://venue.example/a#access_token="+secret),
		"path in a fragment":       slog.String("url", "https://venue.example/a#/b?key="+secret),
		"escaped parameter":        slog.String("url", "https://venue.example/a?api%4Bey="+secret),
		"escaped letters":          slog.String("path", "/a?%63redential%73="+secret),
		"escaped twice":            slog.String("url", "https://venue.example/a?api%254bey="+secret),
		"URL in a parameter":       slog.String("url", "https://venue.example/a?next=%2fb%3Fapikey%3d"+secret),
		"malformed URL":            slog.String("url", "https://u:"+secret+"@venue.example/%zz"),
		"URL in a text":            slog.String("text", "cannot read (https://u:"+secret+"@venue.example/a), twice"),
		"path with credentials":    slog.String("path", "/api/user/orders?address=0x1&credentials="+secret),
		"url.URL":                  slog.Any("url", withUser),
		"url.Error":                slog.Any("err", failed),
		"wrapped error":            slog.Any("err", fmt.Errorf("read orders: %w", failed)),
		"header":                   slog.Any("headers", http.Header{"Authorization": {"Bearer " + secret}, "X-Api-Credentials": {secret}}),
		"struct":                   slog.Any("wallet", wallet{ApiKey: secret}),
		"struct behind pointers":   slog.Any("account", &account{&wallet{ApiKey: secret}}),
		"JSON":                     slog.String("body", `{"apiKey": "`+secret+`","a":1}`),
		"JSON with a quote in it":  slog.String("body", `{"secret":"a\"`+secret+`"}`),
		"quoted JSON":              slog.String("body", fmt.Sprintf("%q", `{"apiKey":"`+secret+`"}`)),
		"JSON bytes":               slog.Any("body", []byte(`{"passphrase":"`+secret+`"}`)),
		"raw JSON":                 slog.Any("body", json.RawMessage(`{"passphrase":"`+secret+`"}`)),
		"JSON with a number":       slog.String("body", `{"apiKey":`+digits+`,"a":1}`),
		"credentials as an object": slog.String("body", `{"credentials": {"k":`+"\n"+`["`+secret+`"]}}`),
		"bearer in a text":         slog.String("text", "sent Bearer "+secret),
	} {
		got := line(func(l *slog.Logger) {
			l.Info("message", attr)
			l.With(attr).WithGroup("g").Info("message", "a", 1)
			l.WithGroup("g").Info("message", attr)
		})
		if strings.Contains(got, secret) || strings.Contains(got, digits) {
			t.Errorf("%s: a secret is logged:\n%s", name, got)
		}
		if !strings.Contains(got, "message") {
			t.Errorf("%s: the message is gone:\n%s", name, got)
		}
	}
	got := line(func(l *slog.Logger) {
		l.Info("asked https://u:" + secret + "@venue.example/a")
		l.WithGroup("credentials").Info("in a group", "a", secret)
	})
	if strings.Contains(got, secret) {
		t.Errorf("a message, or an attribute in the group credentials, shows the secret:\n%s", got)
	}
}

func TestOtherTextsAreLogged(t *testing.T) {
	for _, want := range []string{
		"https://venue.example/api/exchange/prices?tokenIds=1,2", "/api/exchange/prices?tokenId=1", "unexpected token: }", "the cookie jar is empty",
		"key=value: 1", "0x1111111111111111111111111111111111111111", "the basic rule", "100%25 of /a%20b?c=%2f",
	} {
		var out bytes.Buffer
		telemetry.NewLogger(&out, slog.LevelInfo, "json").Info("message", "text", want, "err", errors.New(want))
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got["text"] != want || got["err"] != want {
			t.Errorf("%q is logged as %q and %q", want, got["text"], got["err"])
		}
	}
	var out bytes.Buffer
	telemetry.NewLogger(&out, slog.LevelInfo, "json").Info("message", "tokenId", "7", "token_ids", []string{"7", "8"}, "keys", 40, "wallet", wallet{Address: "0x1"}, "nothing", nil)
	if want := `"level":"INFO","msg":"message","tokenId":"7","token_ids":["7","8"],"keys":40,"wallet":{"ApiKey":"","Address":"0x1"},"nothing":null}`; !strings.Contains(out.String(), want) {
		t.Errorf("logged\n%s\nwant\n%s", out.String(), want)
	}
}

func TestRequestID(t *testing.T) {
	ctx := telemetry.WithRequestID(context.Background(), "r1")
	for name, test := range map[string]struct {
		log  func(*slog.Logger) *slog.Logger
		want string
	}{
		"no attributes":        {func(l *slog.Logger) *slog.Logger { return l }, `"msg":"m","b":2,"request_id":"r1"}`},
		"attributes":           {func(l *slog.Logger) *slog.Logger { return l.With("a", 1) }, `"msg":"m","a":1,"b":2,"request_id":"r1"}`},
		"group":                {func(l *slog.Logger) *slog.Logger { return l.WithGroup("g") }, `"msg":"m","request_id":"r1","g":{"b":2}}`},
		"attributes and group": {func(l *slog.Logger) *slog.Logger { return l.With("a", 1).WithGroup("g").With("c", 3).WithGroup("") }, `"msg":"m","request_id":"r1","a":1,"g":{"c":3,"b":2}}`},
	} {
		var out bytes.Buffer
		log := test.log(telemetry.NewLogger(&out, slog.LevelInfo, "json"))
		log.InfoContext(ctx, "m", "b", 2)
		if !strings.HasSuffix(out.String(), test.want+"\n") {
			t.Errorf("%s: logged\n%s\nwant it to end with\n%s", name, out.String(), test.want)
		}
		out.Reset()
		log.Info("m", "b", 2)
		if strings.Contains(out.String(), "request_id") {
			t.Errorf("%s: a line without a request has an id: %s", name, out.String())
		}
	}
	if id := telemetry.RequestID(context.Background()); id != "" {
		t.Errorf("the request id of a context without an id is %q, want none", id)
	}
	if id := telemetry.RequestID(ctx); id != "r1" {
		t.Errorf("the id is %q, want r1", id)
	}
	seen := map[string]bool{}
	for range 1000 {
		id := telemetry.NewRequestID()
		if len(id) != 26 || seen[id] {
			t.Fatalf("id %q does not have 26 characters or is a duplicate", id)
		}
		seen[id] = true
	}
}
