package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/kalshi"
	"oddsgraph/internal/demo/polymarket"
	"oddsgraph/internal/market/questions"
)

// curated has simulators of Polymarket and Kalshi for the commands of questions.
type curated struct {
	a      *polymarket.Venue
	b      *kalshi.Venue
	server *httptest.Server // of b
	args   []string
	tokens []demo.Token // open outcomes, of binary markets only YES
}

func curate(t *testing.T) *curated {
	t.Helper()
	cfg := demo.Config{Markets: 400, Seed: 1, Opened: startTime}
	c := &curated{a: polymarket.New(cfg), b: kalshi.New(kalshi.Config{Demo: cfg})}
	serve := func(h http.Handler) *httptest.Server {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s
	}
	c.server = serve(c.b)
	c.args = []string{"--venue-driver=polymarket", "--venue-url=" + serve(c.a).URL, "--more-venues=" + write(t, t.TempDir(), "b.env",
		fmt.Sprintf("ODDSGRAPH_VENUE_DRIVER=kalshi\nODDSGRAPH_VENUE_URL=%s%s\nODDSGRAPH_VENUE_TIMEOUT=1s\n", c.server.URL, kalshi.Path))}
	c.tokens = slices.DeleteFunc(c.a.Engine().Tokens(), func(o demo.Token) bool { return o.Status != "OPEN" || o.Outcome == "NO" })
	return c
}

func (c *curated) ids(o demo.Token) [2]string {
	return [2]string{c.a.ID(o.TokenID), "b:" + c.b.ID(o.TokenID)}
}

// questions runs a command of questions, and returns its output and the text of its error.
func (c *curated) questions(t *testing.T, args ...string) (out, failed string) {
	t.Helper()
	var b bytes.Buffer
	if err := run(t.Context(), append(append([]string{"questions"}, args...), c.args...), nil, &b, io.Discard); err != nil {
		failed = err.Error()
	}
	return b.String(), failed
}

var entryForm = regexp.MustCompile(`(?ms)^\{\n.*?^\}`)

// TestPropose checks that questions propose finds each pair of tokens that the simulators have in common, with both rules texts and the
// hashes of these texts, and that it does not propose a pair of the questions file again.
func TestPropose(t *testing.T) {
	t.Parallel()
	c := curate(t)
	out, failed := c.questions(t, "propose")
	if failed != "" {
		t.Fatal(failed)
	}
	found := map[[2]string]string{}
	ids := map[string]bool{}
	for _, text := range entryForm.FindAllString(out, -1) {
		var entry struct {
			ID    string
			Match string
			Legs  []struct{ Token, RulesSHA256 string }
		}
		if err := json.Unmarshal([]byte(text), &entry); err != nil || entry.Match != "" || len(entry.Legs) != 2 || ids[entry.ID] {
			t.Fatalf("got the error %v for the entry %s", err, text)
		}
		ids[entry.ID] = true
		found[[2]string{entry.Legs[0].Token, entry.Legs[1].Token}] = text
	}
	rules := map[string]string{}
	for _, m := range c.a.Engine().Markets() {
		rules[m.MarketID] = m.Description
	}
	for _, o := range c.tokens {
		if text := found[c.ids(o)]; strings.Count(text, questions.RulesHash(rules[o.MarketID])) != 2 {
			t.Errorf("the pair of %s has the entry %q, want one with the hash of its rules twice", o.Slug, text)
		}
	}
	if whole := strings.Join(strings.Fields(out), " "); strings.Count(whole, "resolves by") < 2*len(c.tokens) {
		t.Errorf("the output has %d rules texts", strings.Count(whole, "resolves by"))
	}
	t.Logf("all %d pairs are among the candidates, with %d others", len(c.tokens), len(found)-len(c.tokens))

	first := strings.Replace(found[c.ids(c.tokens[0])], `"match": ""`, `"match": "RELATED"`, 1)
	file := write(t, t.TempDir(), "questions.json", `{"version": 1, "questions": [`+first+`]}`)
	again, failed := c.questions(t, "propose", "--questions-file="+file)
	if n := len(entryForm.FindAllString(again, -1)); failed != "" || n != len(found)-1 {
		t.Errorf("with a pair in the file, %d pairs are proposed (%s), want %d", n, failed, len(found)-1)
	}
	c.server.Close()
	if out, failed = c.questions(t, "propose"); !strings.Contains(failed, "b: after 0 markets: UPSTREAM_UNAVAILABLE") || !strings.Contains(out, "0 of b. 0 pairs") {
		t.Errorf("without one venue: %q, %q", out, failed)
	}
}

// TestQuestionsCheck checks what questions check says of each state of a rules text, and that --accept changes nothing but hashes.
func TestQuestionsCheck(t *testing.T) {
	t.Parallel()
	c := curate(t)
	file := filepath.Join(t.TempDir(), "questions.json")
	legs := func(o demo.Token) string {
		return fmt.Sprintf(`[ {"token": %q}, {"token": %q} ]`, c.ids(o)[0], c.ids(o)[1])
	}
	text := fmt.Sprintf(`{"version": 1,"questions": [
	{"id": "one", "title": "One",   "match": "EXACT", "checkedAt": "2026-11-20", "checkedBy": "jd", "legs": %s},
	{"id": "two", "title": "Two", "match": "RELATED", "checkedAt": "2026-11-20", "legs": %s} ] }`, legs(c.tokens[0]), legs(c.tokens[len(c.tokens)-1]))
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	want := func(step, wantOut, wantFailed string, args ...string) {
		t.Helper()
		out, failed := c.questions(t, append([]string{"check", file}, args...)...)
		if !strings.Contains(out, wantOut) || !strings.Contains(failed, wantFailed) || (failed == "") != (wantFailed == "") {
			t.Errorf("%s: got %q and the error %q, want %q and %q", step, out, failed, wantOut, wantFailed)
		}
	}
	want("no hash", "THE RULES ARE NOT THE CONFIRMED ONES: their hash is ", "1 of 2 questions are not in order")
	want("unknown id", "", `has no question "three"`, "--accept=three")
	want("accept", "confirms these texts now", "", "--accept=one")
	confirmed := ""
	for _, m := range c.a.Engine().Markets() {
		if m.MarketID == c.tokens[0].MarketID {
			confirmed = questions.RulesHash(m.Description)
			for _, id := range c.ids(c.tokens[0]) {
				text = strings.Replace(text, fmt.Sprintf("%q", id), fmt.Sprintf(`%q,"rulesSha256":%q`, id, confirmed), 1)
			}
		}
	}
	content := func() string {
		t.Helper()
		got, err := os.ReadFile(file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the file has the mode %v (%v, %v), want 0640", info.Mode(), err, statErr)
		}
		return string(got)
	}
	if got := content(); got != text {
		t.Errorf("after --accept, the file is\n%s\nwant\n%s", got, text)
	}
	want("accepted", "the rules are the confirmed ones", "")
	must(t, c.b.Engine().Reword(c.tokens[0].MarketID, "Other rules.\x1b[2J"))
	want("new rules", ", the file has "+confirmed, "1 of 2 questions are not in order")
	want("both texts", "Other rules. [2J", "1 of 2 questions are not in order")
	must(t, c.b.Engine().Reword(c.tokens[0].MarketID, ""))
	want("no rules", "the venue gives no rules text", "1 of 2 questions are not in order")
	want("accept no rules", "the venue gives no rules text", "yes: the venue gives no rules text", "--accept=one")
	c.server.Close()
	want("a venue is down", "it could not be read: UPSTREAM_UNAVAILABLE", "1 of 2 questions are not in order")
	want("accept unread rules", "it could not be read", "yes: it could not be read", "--accept=one")
	if got := content(); got != text {
		t.Errorf("rules that could not be read were accepted: %s", got)
	}
	if files, err := os.ReadDir(filepath.Dir(file)); err != nil || len(files) != 1 {
		t.Errorf("the folder of the file has %v, want the file alone", files)
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(text, `"EXACT"`, "null", 1)), 0o640))
	want("invalid", "", "line 2: /questions/0: the title, match or checkedAt is missing")
}

// TestQuestionsCommandsRefuse checks the errors of commands that need another configuration.
func TestQuestionsCommandsRefuse(t *testing.T) {
	for args, want := range map[string]string{
		"propose": "set --more-venues (ODDSGRAPH_MORE_VENUES)",
		"propose --demo-driver=polymarket,kalshi --questions-file=/no/file": "open /no/file: no such file",
		"check":          "questions check needs the path of a file, or --questions-file",
		"check /no/file": "open /no/file: no such file",
	} {
		if err := run(t.Context(), append([]string{"questions"}, strings.Fields(args)...), nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("questions %s: got the error %v, want %q", args, err, want)
		}
	}
}
