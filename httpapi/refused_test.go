package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"oddsgraph/httpapi/quota"
)

// wrongArguments is a request with 50 errors. Each error quotes a text that JSON must escape.
var wrongArguments = func() string {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, `a%d:searchMarkets(first:"%d%s"){nodes{id}} `, i, i, strings.Repeat("<", 1000))
	}
	body, _ := json.Marshal(map[string]string{"query": "{" + b.String() + "}"})
	return string(body)
}()

// TestRefusalsAreShort checks that a response with many long errors has at most quota.FreeBytes.
func TestRefusalsAreShort(t *testing.T) {
	h := New(testConfig(t))
	for _, accept := range []string{typeResponse, typeJSON, typeEvents} {
		w := &tape{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, postRequest(t.Context(), wrongArguments, "Accept", accept))
		whole := strings.Join(w.heard, "")
		body, _, _ := strings.Cut(strings.TrimPrefix(whole, ":\n\nevent: next\ndata: "), "\n")
		if len(whole) > quota.FreeBytes {
			t.Errorf("%s: a refusal of %d bytes", accept, len(whole))
		}
		var a answer
		if err := json.Unmarshal([]byte(body), &a); err != nil || len(a.Errors) < 5 {
			t.Fatalf("%s: %v %.300s", accept, err, whole)
		}
		if last := a.Errors[len(a.Errors)-1]; !strings.HasSuffix(last.Message, " more errors") || last.Extensions.Code == "" {
			t.Errorf("%s: %d errors, the last is %+v", accept, len(a.Errors), last)
		}
		for _, err := range a.Errors {
			if text, _ := json.Marshal(err.Message); len(text) > 1<<10+20 {
				t.Errorf("%s: a message of %d bytes: %.100s", accept, len(text), text)
			}
		}
	}
}

// TestACompressedResponseKeepsNothingElse checks that a response needs at most 200 KiB in addition to its compressed bytes until
// the client has read it.
func TestACompressedResponseKeepsNothingElse(t *testing.T) {
	for _, cached := range []bool{false, true} {
		t.Run(fmt.Sprintf("cached %v", cached), func(t *testing.T) {
			cfg, _ := keeping(t)
			if !cached {
				cfg.ResponseBytes = 0
			} else {
				cfg.ResponseBytes = 1 << 20 // the responses are too large for this cache
			}
			h := New(cfg)
			selected := ""
			for i := range 190 {
				selected += fmt.Sprintf("a%d: price ", i)
			}
			const n = 20
			var reading sync.WaitGroup
			defer reading.Wait()
			read := make(chan struct{})
			defer close(read)
			ask := func(i int, w http.ResponseWriter) {
				ids := strings.Replace(manyIDs, `"0"`, fmt.Sprintf(`"x%d"`, i), 1)
				body := fmt.Sprintf(`{"query":"query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { %s } }","variables":{"ids":%s}}`, selected, ids)
				h.ServeHTTP(w, postRequest(t.Context(), body, "Accept-Encoding", "gzip"))
			}
			plain := &httptest.ResponseRecorder{}
			ask(0, plain)
			before := living()
			for i := range n {
				w := &stuck{httptest.NewRecorder(), make(chan struct{}), read}
				reading.Go(func() { ask(i+1, w) })
				<-w.writing
				if w.Code != http.StatusOK {
					t.Fatalf("%d", w.Code)
				}
			}
			// Each response has more than 1 MiB before it is compressed.
			if more := living() - before - h.Stats().Output; more > n*200<<10 {
				t.Errorf("%d KiB are in use for each response beyond its counted output", more/n>>10)
			}
		})
	}
}

// living returns the bytes of all live objects.
func living() int {
	var m runtime.MemStats
	for range 3 { // the second collection frees pooled objects
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestKeptErrorsAreCounted checks that cached responses with errors take no more memory than the cache counts.
func TestKeptErrorsAreCounted(t *testing.T) {
	cfg, _ := keeping(t)
	cfg.ResponseBytes = 64 << 20
	h := New(cfg)
	ask := func(i int) {
		var ids []string
		for j := range maxCachedErrors {
			ids = append(ids, fmt.Sprintf(`"no,%d,%d,%s"`, i, j, strings.Repeat("x", 200)))
		}
		w := post(t, h, `{"query":"query ($ids: [String!]!) { tokenPrices(tokenIds: $ids) { price } }","variables":{"ids":[`+strings.Join(ids, ",")+`]}}`)
		if strings.Count(w.Body.String(), "BAD_USER_INPUT") != maxCachedErrors {
			t.Fatal(w.Body)
		}
	}
	for i := range 100 {
		ask(i)
	}
	const n = 1000
	before, counted := living(), h.Stats().Responses
	for i := range n {
		ask(100 + i)
	}
	after := h.Stats().Responses
	takes, counts := (living()-before)/n, int(after.Bytes-counted.Bytes)/n
	t.Logf("%d bytes are taken, %d counted", takes, counts)
	if after.Entries-counted.Entries != n || takes > counts {
		t.Errorf("%d responses are cached; each takes %d bytes and counts %d", after.Entries-counted.Entries, takes, counts)
	}
}
