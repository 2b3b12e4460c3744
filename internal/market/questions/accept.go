package questions

import "slices"

// Accept returns the content of a file in which the legs of q confirm rules texts with the given hashes. q is a question of the same
// content. Everything else stays as it is.
func Accept(content []byte, q *Question, hashes []string) []byte {
	out := slices.Clone(content)
	for i, l := range slices.Backward(q.Legs) { // an edit moves what is after it
		text := `"` + hashes[i] + `"`
		if l.RulesSHA256 == "" {
			text = `, "rulesSha256": ` + text
		}
		out = slices.Replace(out, l.hash.from, l.hash.to, []byte(text)...)
	}
	return out
}
