package polymarket

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
)

func isToken(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isCondition(s string) bool {
	digits, ok := strings.CutPrefix(s, "0x")
	return ok && digits != "" && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}

// conditionID returns a condition id in the form of the CLOB API, the Data API and the socket, which is the id of the market. The
// condition ids of markets of Polymarket's protocol V2 have only 62 digits in the Gamma API. The other APIs append two zeros.
func conditionID(id string) string {
	if len(id) == len("0x")+62 && isCondition(id) {
		return market.Intern(id + "00")
	}
	return id
}

// MarketID returns the id of a market in the form that the driver's data have, from the form of any of Polymarket's APIs.
func MarketID(id string) string { return conditionID(id) }

// conditionForms returns the forms of a condition id by which Gamma may find a market: two for a market of protocol V2, and otherwise
// one. Gamma accepts both forms in its filter, but its documentation does not say which of them it compares.
func conditionForms(id string) []string {
	long := conditionID(id)
	if short, ok := strings.CutSuffix(long, "00"); ok && len(short) == len("0x")+62 && isCondition(id) && isV2(long[len("0x"):], 16) {
		return []string{short, long}
	}
	return []string{id}
}

// isPosition reports whether a text has the form of the id of a token of protocol V2. Polymarket calls such a token a position.
func isPosition(s string) bool { return isToken(s) && isV2(s, 10) }

// Version returns the version of Polymarket's protocol of a market.
func Version(m *market.Market) string {
	if len(m.Outcomes) > 0 && isPosition(m.Outcomes[0].TokenID) {
		return versionV2
	}
	return versionV1
}

// isV2 reports whether a number has the layout of an id of protocol V2: a module of 8 bits, which is not 0, a hash of 128 bits, a
// number of outcomes of 16 bits, 64 bits that are 0, and 40 further bits. The other ids of Polymarket are hashes of 256 bits, so they
// do not have this layout.
func isV2(number string, base int) bool {
	n, ok := new(big.Int).SetString(number, base)
	if !ok || n.BitLen() > 256 {
		return false
	}
	b := n.FillBytes(make([]byte, 32))
	return b[0] != 0 && !slices.ContainsFunc(b[19:27], func(b byte) bool { return b != 0 })
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

func isTraded(m *market.Market) bool { return len(m.Outcomes) > 0 && isToken(m.Outcomes[0].TokenID) }
