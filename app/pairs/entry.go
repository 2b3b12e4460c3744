// Package pairs helps a person to find questions that two venues share, and to confirm their rules. It never decides whether two
// markets ask the same question.
package pairs

import (
	"bytes"
	"encoding/json"

	"oddsgraph/internal/market/questions"
)

// Entry is a question in the form of the questions file. A nil Match is for a person to fill in.
type Entry struct {
	ID          string           `json:"id"`
	Title       string           `json:"title"`
	Match       *questions.Match `json:"match"`
	Differences []string         `json:"differences"`
	CheckedAt   string           `json:"checkedAt"`
	CheckedBy   string           `json:"checkedBy"`
	Legs        []EntryLeg       `json:"legs"`
}

// EntryLeg is a leg of an Entry.
type EntryLeg struct {
	Token        string `json:"token"`
	RulesSHA256  string `json:"rulesSha256"`
	TakerFeeRate string `json:"takerFeeRate,omitempty"`
}

// File returns the questions file with the given entries.
func File(entries ...Entry) []byte {
	return encode(map[string]any{"version": 1, "questions": entries})
}

// encode returns v as indented JSON, which ends with a newline.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // entries have no value that JSON lacks
	return b.Bytes()
}
