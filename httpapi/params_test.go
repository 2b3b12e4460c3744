package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"oddsgraph/internal/market"
)

func TestParams(t *testing.T) {
	for _, test := range []struct {
		body string
		want params
		says string // part of the error
	}{
		{body: `{"query":"{a}"}`, want: params{Query: "{a}"}},
		{body: " \r\n\t{ \"query\" : \"{a}\" , \"operationName\":\"A\" } ", want: params{Query: "{a}", OperationName: "A"}},
		{body: `{"query":"{a}","variables":{"b":[1,{"c":"}"}]},"extensions":{"d":null}}`, want: params{Query: "{a}", Variables: `{"b":[1,{"c":"}"}]}`, Extensions: json.RawMessage(`{"d":null}`)}},
		{body: `{"query":"\u007ba\u007D \"\\\""}`, want: params{Query: `{a} "\"`}},
		{body: `{"qu\u0065ry":"{a}"}`, want: params{Query: "{a}"}},
		{body: `{"documentId":"sha256:0","variables":{}}`, want: params{DocumentID: "sha256:0", Variables: `{}`}},
		{body: `{"query":null,"operationName":null,"variables":null,"extensions":null,"documentId":null}`},
		{body: `{"Query":"{a}","QUERY":"{b}","more":[{"query":"{c}"}],"x":1,"y":true,"z":"\\"}`}, // names are case-sensitive
		{body: `{"query":"Run🏃Swim🏊"}`, want: params{Query: "Run🏃Swim🏊"}},
		{body: `{}`},

		{body: ``, says: "not a JSON object"},
		{body: `x`, says: "not a JSON object"},
		{body: `null`, says: "not a JSON object"},
		{body: `"query"`, says: "not a JSON object"},
		{body: `[{"query":"{a}"}]`, says: "not a JSON object"},
		{body: `{"query":"{a}"`, says: "not a JSON object"},
		{body: `{"query":"{a}"}{}`, says: "not a JSON object"},
		{body: `{"query":"{a}"} x`, says: "not a JSON object"},
		{body: `{"query":"{a}",}`, says: "not a JSON object"},
		{body: `{'query':'{a}'}`, says: "not a JSON object"},
		{body: "\u00a0" + `{"query":"{a}"}`, says: "not a JSON object"},
		{body: "\xef\xbb\xbf" + `{"query":"{a}"}`, says: "not a JSON object"}, // a byte order mark
		{body: `{"query":"` + "\xff" + `"}`, says: "not UTF-8"},
		{body: `{"query":"` + "\xed\xa0\x80" + `"}`, says: "not UTF-8"}, // a surrogate
		{body: strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000), says: "not a JSON object"},
		{body: `{"query":"{a}","query":"{b}"}`, says: "query is present twice"},
		{body: `{"query":null,"query":"{b}"}`, says: "query is present twice"},
		{body: `{"variables":{},"query":"{a}","vari\u0061bles":{}}`, says: "variables is present twice"},
		{body: `{"query":1}`, says: "query is not a string"},
		{body: `{"query":{"a":"b"}}`, says: "query is not a string"},
		{body: `{"query":["a"]}`, says: "query is not a string"},
		{body: `{"query":false}`, says: "query is not a string"},
		{body: `{"query":"{a}","operationName":0}`, says: "operationName is not a string"},
		{body: `{"documentId":[]}`, says: "documentId is not a string"},
		{body: `{"query":"{a}","variables":"{}"}`, says: "variables is not an object"},
		{body: `{"query":"{a}","variables":[]}`, says: "variables is not an object"},
		{body: `{"query":"{a}","variables":0}`, says: "variables is not an object"},
		{body: `{"query":"{a}","extensions":true}`, says: "extensions is not an object"},
	} {
		name := test.body[:min(len(test.body), 60)]
		body := []byte(test.body)
		p, err := parseParams(body)
		clear(body) // the result must not share memory with the body
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) || market.CodeOf(err) != market.CodeBadUserInput {
				t.Errorf("%s: got %+v and the error %v, want an error with %q", name, p, err, test.says)
			}
			continue
		}
		if p != nil {
			p.hasQuery = false
		}
		if err != nil || !reflect.DeepEqual(*p, test.want) {
			t.Errorf("%s: got %+v and the error %v, want %+v", name, p, err, test.want)
		}
	}
}

func TestQueryString(t *testing.T) {
	for _, test := range []struct {
		raw  string
		want params
		says string
	}{
		{raw: "query=%7Ba%7D&operationName=A&variables=%7B%22b%22:1%7D&extensions=%7B%7D&documentId=x&v=7", want: params{
			Query: "{a}", OperationName: "A", Variables: `{"b":1}`, Extensions: json.RawMessage("{}"), DocumentID: "x"}},
		{raw: "query={a+b}", want: params{Query: "{a b}"}},
		{raw: "query={a}&variables=&extensions=null&operationName=", want: params{Query: "{a}"}},
		{raw: ""},
		{raw: "query=%zz", says: "malformed"},
		{raw: "query={a};b", says: "malformed"},
		{raw: "query=%ff", says: "query is not UTF-8"},
		{raw: "variables=%7B%22a%22:%22%ff%22%7D", says: "variables is not UTF-8"},
		{raw: "query={a}&query={b}", says: "query was sent 2 times"},
		{raw: "variables={}&variables={}", says: "variables was sent 2 times"},
		{raw: "variables=[1]", says: "variables is not a JSON object"},
		{raw: "variables=x", says: "variables is not a JSON object"},
		{raw: "variables={}{}", says: "variables is not a JSON object"},
		{raw: "extensions=1", says: "extensions is not a JSON object"},
	} {
		p, err := parseQueryString(test.raw)
		if test.says != "" {
			var known *httpError
			if !errors.As(err, &known) || known.status != 400 || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: got the error %v, want the status 400 and %q", test.raw, err, test.says)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(*p, test.want) {
			t.Errorf("%s: got %+v and the error %v, want %+v", test.raw, p, err, test.want)
		}
	}
}

// FuzzParams compares the results of parseParams and encoding/json.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		`{"query":"{a}","variables":{"b":[1,"}"]},"operationName":null}`, `{"a":{"b":[]},"c":"\"","query":"x"} `, `{"query":"\ud800"}`, `{"":1}`, `{}`, `[1]`, `{"extensions":{}}`,
		`{"q":-1.5e+7 ,"r":true,"s":null,"t":[[],{}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := parseParams(bytes.Clone(body))
		var reference map[string]json.RawMessage
		good := utf8.Valid(body) && json.Unmarshal(body, &reference) == nil && reference != nil
		if err != nil {
			if ofMember := strings.HasPrefix(err.Error(), "the member "); good != ofMember {
				t.Fatalf("%q: got the error %v; encoding/json accepts the body: %v", body, err, good)
			}
			return
		}
		if !good {
			t.Fatalf("the invalid body %q was parsed as %+v", body, p)
		}
		for name, got := range map[string]string{"query": p.Query, "operationName": p.OperationName, "documentId": p.DocumentID} {
			var want *string
			if raw, ok := reference[name]; ok {
				if err := json.Unmarshal(raw, &want); err != nil {
					t.Fatalf("%q was accepted, although the member %s is %s", body, name, raw)
				}
			}
			if want == nil && got != "" || want != nil && got != *want {
				t.Errorf("%q: the member %s was parsed as %q", body, name, got)
			}
		}
		for name, got := range map[string]string{"variables": p.Variables, "extensions": string(p.Extensions)} {
			if want := reference[name]; string(want) != got && string(want) != "null" {
				t.Errorf("%q: the member %s was parsed as %s, want %s", body, name, got, want)
			}
		}
	})
}

func FuzzQueryString(f *testing.F) {
	for _, seed := range []string{"query=%7Ba%7D", "variables={}&extensions=null", "query=a&query=b", "a=%zz", "variables=%ff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := parseQueryString(raw)
		if err != nil {
			var known *httpError
			if !errors.As(err, &known) || known.status != 400 {
				t.Errorf("%q: got the error %v, want the status 400", raw, err)
			}
			return
		}
		for _, object := range []string{p.Variables, string(p.Extensions)} {
			if object != "" && (!json.Valid([]byte(object)) || object[0] != '{') {
				t.Errorf("%q: the parameter %s was accepted, but is not a JSON object", raw, object)
			}
		}
		if !utf8.ValidString(p.Query) || !utf8.ValidString(p.OperationName) || !utf8.ValidString(p.DocumentID) {
			t.Errorf("%q: the parameters %+v contain invalid UTF-8", raw, p)
		}
	})
}
