package pairs

import (
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

var venues = market.Names{"", "kalshi", "other"}

const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// valid is a file with one question of each match.
const valid = `{"version": 1, "questions": [
  {"id": "a", "title": "A?", "match": "EXACT", "differences": [], "checkedAt": "2026-11-20", "checkedBy": "jd",
   "legs": [{"token": "1", "rulesSha256": "` + hash + `", "takerFeeRate": "0"}, {"token": "kalshi:K:yes", "takerFeeRate": "0.07"}]},
  {"id": "b", "title": "B?", "match": "NEAR", "differences": ["ends a day later"], "checkedAt": "2026-11-20",
   "legs": [{"token": "1"}, {"token": "other:O"}]},
  {"id": "c", "title": "C?", "match": "RELATED", "checkedAt": "2026-11-20", "legs": [{"token": "2"}, {"token": "other:P"}]}
]}`

func TestParse(t *testing.T) {
	s, err := Parse([]byte(valid), venues)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Find("a")
	if len(s.All()) != 3 || a.Match != questions.Exact || a.Legs[0].RulesSHA256 != hash || a.Legs[1].TakerFeeRate.String() != "0.07" || a.CheckedAt.String() != "2026-11-20" {
		t.Errorf("got %d questions, the first one %+v", len(s.All()), a)
	}
}

func TestParseErrors(t *testing.T) {
	leg := `{"token": "2"}, {"token": "other:P"}`
	for _, tt := range []struct{ old, new, want string }{
		{`{"version"`, `"version"`, "line 1: /: has the wrong type"},
		{`"version": 1`, `"version": 2`, "line 1: /: must have the version 1 and a list of questions"},
		{`"version": 1, `, ``, "line 1: /: must have the version 1 and a list of questions"},
		{"]}\n]}", "]}", "unexpected EOF"},
		{`"checkedBy"`, `"CheckedBy"`, "/questions/0/CheckedBy: unknown object member name"},
		{`"checkedBy"`, `"checker"`, "/questions/0/checker: unknown object member name"},
		{`"checkedBy"`, `"title"`, "/questions/0/title: duplicate object member name"},
		{`"A?"`, `""`, "line 2: /questions/0: the title, match or checkedAt is missing"},
		{`"id": "a"`, `"id": "a b"`, "/questions/0: the id must be 1 to 64 letters"},
		{`"id": "b"`, `"id": "a"`, `line 2: /questions/0: the id "a" is that of another question`},
		{`"NEAR"`, `"near"`, "line 4: /questions/1/match: must be EXACT, NEAR or RELATED"},
		{`"NEAR"`, `null`, "/questions/1: the title, match or checkedAt is missing"},
		{`"differences": []`, `"differences": ["x"]`, "/questions/0: a NEAR question must have differences, and an EXACT one none"},
		{`"differences": ["ends a day later"], `, ``, "line 4: /questions/1: a NEAR question must have differences"},
		{`"NEAR", "differences": ["ends a day later"]`, `"EXACT"`, "line 2: /questions/0: the token 1 is also a leg of another question, and both are EXACT"},
		{`2026-11-20`, `2026-11-31`, "/questions/0/checkedAt: \"2026-11-31\" is not a date of the form YYYY-MM-DD"},
		{leg, `{"token": "2"}`, "/questions/2: has 1 legs; it must have 2 to 8"},
		{leg, leg + `, {"token": "other:Q"}`, "/questions/2: has two legs at the venue of other:Q"},
		{leg, `{"token": "2"}, {"token": "3"}`, "/questions/2: has two legs at the venue of 3"},
		{leg, `{"token": "2"}, {"rulesSha256": "` + hash + `"}`, "line 6: /questions/2: the token \""},
		{"other:P", "other:", "line 6: /questions/2: the token \""},
		{"other:P", "othr:P", "line 6: /questions/2: has two legs at the venue of othr:P"},
		{valid[strings.Index(valid, "["):strings.LastIndex(valid, "}")], `null`, "line 1: /: must have the version 1 and a list of questions"},
		{"other:P", "other:P/Q", "/questions/2: the token \"other:P/Q\" must have 1 to 256 bytes without comma, slash"},
		{hash, strings.ToUpper(hash), "/questions/0: the rulesSha256 of 1 must be 64 lower-case hexadecimal digits"},
		{`"0.07"`, `0.07`, "line 3: /questions/0/legs/1/takerFeeRate: JSON value must be string type"},
		{`"0.07"`, `"1.01"`, "/questions/0: the takerFeeRate of kalshi:K:yes must be from 0 to 1"},
		{`"0.07"`, `"x"`, "/questions/0/legs/1/takerFeeRate: "},
		{`"0.07"`, `"-0.07"`, "/questions/0: the takerFeeRate of kalshi:K:yes must be from 0 to 1"},
		{`"checkedAt": "2026-11-20", `, ``, "/questions/0: the title, match or checkedAt is missing"},
		{valid[strings.Index(valid, "{\"id\": \"c\""):strings.LastIndex(valid, "\n")], `null`, "line 6: /questions/2: the id must be 1 to 64 letters"},
		{"A?", "\xff", "line 2: /questions/0/title: invalid UTF-8"},
	} {
		text := strings.Replace(valid, tt.old, tt.new, 1)
		if _, err := Parse([]byte(text), venues); text == valid || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s instead of %s: got %v, want %s", tt.new, tt.old, err, tt.want)
		}
	}
}
