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

	"oddsgraph/httpapi/content"
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
	for _, accept := range []string{content.Response, content.JSON, content.Events} {
		w := &tape{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, postRequest(t.Context(), wrongArguments, "Accept", accept))
		whole := strings.Join(w.writes, "")
		body, _, _ := strings.Cut(strings.TrimPrefix(whole, ":\n\nevent: next\ndata: "), "\n")
		if len(whole) > quota.FreeBytes {
			t.Errorf("%s: the response has %d bytes, want at most %d", accept, len(whole), quota.FreeBytes)
		}
		var a answer
		if err := json.Unmarshal([]byte(body), &a); err != nil || len(a.Errors) < 5 {
			t.Fatalf("%s: the response is %.300s (error %v), want at least 5 errors", accept, whole, err)
		}
		if last := a.Errors[len(a.Errors)-1]; !strings.HasSuffix(last.Message, " more errors") || last.Extensions.Code == "" {
			t.Errorf("%s: the last of %d errors is %+v, want one that counts the omitted errors and has a code", accept, len(a.Errors), last)
		}
		for _, err := range a.Errors {
			if text, _ := json.Marshal(err.Message); len(text) > 1<<10+20 {
				t.Errorf("%s: a message has %d bytes, want at most %d: %.100s", accept, len(text), 1<<10+20, text)
			}
		}
	}
}

// TestACompressedResponseKeepsNothingElse checks that an unread response needs at most 200 KiB in addition to its compressed bytes.
func TestACompressedResponseKeepsNothingElse(t *testing.T) {
	for _, cached := range []bool{false, true} {
		t.Run(fmt.Sprintf("cached %v", cached), func(t *testing.T) {
			cfg, _ := cachingConfig(t)
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
			before := liveBytes()
			for i := range n {
				w := &stuck{httptest.NewRecorder(), make(chan struct{}), read}
				reading.Go(func() { ask(i+1, w) })
				<-w.writing
				if w.Code != http.StatusOK {
					t.Fatalf("response %d has the status %d, want 200", i, w.Code)
				}
			}
			// Each response has more than 1 MiB before it is compressed.
			if more := liveBytes() - before - h.Stats().Output; more > n*200<<10 {
				t.Errorf("each unread response needs %d KiB more than its counted output, want at most 200 KiB", more/n>>10)
			}
		})
	}
}

// liveBytes returns the number of bytes of all live objects.
func liveBytes() int {
	var m runtime.MemStats
	for range 3 { // the second collection frees pooled objects
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestCachedErrorsAreCounted checks that cached responses with errors need no more memory than the cache counts.
func TestCachedErrorsAreCounted(t *testing.T) {
	cfg, _ := cachingConfig(t)
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
	before, counted := liveBytes(), h.Stats().Responses
	for i := range n {
		ask(100 + i)
	}
	after := h.Stats().Responses
	takes, counts := (liveBytes()-before)/n, int(after.Bytes-counted.Bytes)/n
	t.Logf("a response needs %d bytes and counts %d", takes, counts)
	if after.Entries-counted.Entries != n || takes > counts {
		t.Errorf("%d responses were cached, want %d; each needs %d bytes and counts %d, want at least as many", after.Entries-counted.Entries, n, takes, counts)
	}
}
