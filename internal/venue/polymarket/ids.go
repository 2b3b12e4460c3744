package polymarket

import (
	"strconv"
	"strings"

	"oddsgraph/internal/market"
)

// isToken reports whether a text has the form of a token id.
func isToken(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isCondition reports whether a text has the form of a condition id.
func isCondition(s string) bool {
	digits, ok := strings.CutPrefix(s, "0x")
	return ok && digits != "" && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}

// isGammaID reports whether a text has the form of a market's id in the Gamma API, which is a 64-bit number.
func isGammaID(s string) bool { return isToken(s) && len(s) < 19 }

// outcomeID returns the id of an outcome that has no token in an order book. This id is never sent to Polymarket.
func outcomeID(marketID string, index int) string { return marketID + ":" + strconv.Itoa(index) }

// marketOf returns the id of the market in an id from outcomeID. If id is not from outcomeID, the result is "".
func marketOf(id string) string {
	marketID, index, _ := strings.Cut(id, ":")
	if n, err := strconv.Atoi(index); err != nil || n < 0 || outcomeID(marketID, n) != id {
		return ""
	}
	return marketID
}

// isTraded reports whether a market has tokens in the order books.
func isTraded(m *market.Market) bool { return len(m.Outcomes) > 0 && isToken(m.Outcomes[0].TokenID) }
