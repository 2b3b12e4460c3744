package limits

import "strings"

// Variables returns an error if the variables of a request exceed a limit for their size, their nesting, or the length of a list or
// object. Call Variables before the variables are decoded. raw is the JSON text of the object, or empty. Variables does not check
// that raw is JSON. But decoding an accepted text takes limited time and memory.
func (g *Guard) Variables(raw string) error {
	if n := len(raw); n > g.limits.VariableBytes {
		return refuse(RuleVariableBytes, "the variables have %d bytes; at most %d are accepted: send several requests", n, g.limits.VariableBytes)
	}
	// commas[i] counts the commas that were found so far in the open list or object at level i.
	var few [32]int
	commas := few[:0]
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = endOfString(raw, i)
		case '[', '{':
			if commas = append(commas, 0); len(commas) > g.limits.Depth {
				return refuse(RuleDepth, "the variables are nested more than %d deep", g.limits.Depth)
			}
		case ']', '}':
			if len(commas) > 0 {
				commas = commas[:len(commas)-1]
			}
		case ',':
			if len(commas) == 0 {
				continue
			}
			if commas[len(commas)-1]++; commas[len(commas)-1] >= g.limits.ListItems {
				return refuse(RuleListItems, "a list or object in the variables has more than %d items: send several requests", g.limits.ListItems)
			}
		}
	}
	return nil
}

// endOfString returns the index of the quote that ends the string that begins at start. If no quote ends it, the result is
// len(raw).
func endOfString(raw string, start int) int {
	rest := raw[start+1:]
	if quote := strings.IndexByte(rest, '"'); quote >= 0 && strings.IndexByte(rest[:quote], '\\') < 0 {
		return start + 1 + quote
	}
	for i := start + 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(raw)
}
