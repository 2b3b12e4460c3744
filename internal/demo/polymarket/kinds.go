package polymarket

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The versions of Polymarket's protocol. Gamma sends them as the member "version" of a market.
const versionV1, versionV2 = "v1", "v2"

// OldMarkets is the number of closed markets without an order book. They are only in the Gamma API, after all other markets, and have
// no counterpart at the demo venue.
const OldMarkets = 3

// isV2 reports whether a binary market is one of protocol V2.
func isV2(number int) bool { return number%11 == 5 }

// conditionV2 returns a condition id of protocol V2 with 64 digits. It has the layout that Polymarket documents: a module of 8 bits,
// which is 1 for binary markets, a hash of 128 bits, and 112 bits that are 0, followed by 8 bits for the outcome, which are 0, too.
func conditionV2(demoToken string) string {
	return "0x01" + digest("condition", demoToken)[:32] + strings.Repeat("0", 30)
}

// positionID returns the id of a token of protocol V2: the condition id with the number of the outcome in its last 8 bits, as a
// decimal number.
func positionID(conditionID string, index int) string {
	n, ok := new(big.Int).SetString(strings.TrimPrefix(conditionID, "0x"), 16)
	if !ok {
		panic("polymarket: a condition id is no number: " + conditionID)
	}
	return n.Add(n, big.NewInt(int64(index))).String()
}

// gammaCondition returns the condition id in the form of the Gamma API. For protocol V2, this form has 62 digits, without the bits of
// the outcome. The other APIs have 64 digits.
func (m *market) gammaCondition() string {
	if m.version == versionV2 {
		return strings.TrimSuffix(m.conditionID, "00")
	}
	return m.conditionID
}

// setV2 makes a market one of protocol V2. Half of these markets also have tokens of V1, which do not trade.
func (m *market) setV2(demoToken string) {
	m.version, m.conditionID = versionV2, conditionV2(demoToken)
	if m.number%2 == 0 {
		m.oldTokenIDs = slices.Clone(m.tokenIDs[:])
	}
	m.tokenIDs = [2]string{positionID(m.conditionID, 0), positionID(m.conditionID, 1)}
}

// addOldMarkets adds the closed markets without an order book. Gamma has several ways to say that a market has no tokens, and
// Polymarket/ts-sdk also reads an empty condition id (packages/bindings/src/gamma/market.test.ts).
func (v *Venue) addOldMarkets() {
	if len(v.markets) == 0 {
		return
	}
	for i := range OldMarkets {
		s := v.markets[0].state
		s.Status, s.Winner, s.Binary = "RESOLVED", i%2, true
		s.MarketID, s.EventID, s.TokenIDs, s.Outcomes = "", "", nil, nil
		s.Slug, s.Question, s.GroupTitle = "old-market-"+strconv.Itoa(i), "Will old market "+strconv.Itoa(i)+" resolve to Yes?", ""
		s.EndAt = v.Created.Add(-time.Duration(1000+i) * time.Hour)
		s.StartAt, s.ClosedAt, s.ResolvedAt, s.UpdatedAt = s.EndAt.Add(-1000*time.Hour), s.EndAt, s.EndAt, s.EndAt
		s.Volume24h, s.Liquidity = 0, 0
		e := &event{id: strconv.Itoa(20_000 + len(v.events)), slug: s.Slug, title: s.Question}
		n := len(v.markets)
		m := &market{
			number: n, id: strconv.Itoa(500_000 + n), conditionID: "0x" + digest("old", strconv.Itoa(i)), slug: s.Slug, question: s.Question,
			labels: [2]string{"Yes", "No"}, event: e, old: [...]string{"null", "missing", "[]"}[i], state: s, price: payout / 2, subs: map[*conn]int{},
		}
		if m.old == "[]" {
			m.conditionID = ""
		}
		e.markets = []*market{m}
		v.events, v.markets, v.eventBySlug[e.slug] = append(v.events, e), append(v.markets, m), e
	}
}

// tokenMembers adds the members of a Gamma market that name its tokens.
func (m *market) tokenMembers(out object) {
	switch m.old {
	case "null":
		out["clobTokenIds"] = nil
		return
	case "missing":
		return
	case "[]":
		out["clobTokenIds"] = "[]"
		return
	}
	out["version"] = m.version
	if m.version == versionV1 {
		out["clobTokenIds"] = jsonText(m.tokenIDs)
		return
	}
	out["positionIds"], out["clobTokenIds"] = m.tokenIDs, nil
	if len(m.oldTokenIDs) > 0 {
		out["clobTokenIds"] = jsonText(m.oldTokenIDs)
	}
}

// resolutionMembers adds the members of a Gamma market that tell the progress of its resolution.
func (m *market) resolutionMembers(out object) {
	if m.isClosed() {
		out["closedTime"], out["resolvedBy"] = m.state.ClosedAt.UTC().Format(gammaTime), "0x"+digest("resolver", m.event.id)[:40]
	}
	if m.version == versionV2 { // inactive, active or resolved
		switch {
		case m.state.Status == "DISPUTED", m.state.Status == "CLOSED":
			out["resolutionStatus"] = "active"
		case m.isClosed():
			out["resolutionStatus"] = "resolved"
		default:
			out["resolutionStatus"] = "inactive"
		}
		return
	}
	switch {
	case m.state.Status == "DISPUTED":
		out["umaResolutionStatus"], out["umaResolutionStatuses"] = "disputed", jsonText([]string{"proposed", "disputed"})
	case m.state.Status == "CLOSED":
		out["umaResolutionStatus"], out["umaResolutionStatuses"] = "proposed", jsonText([]string{"proposed"})
	case m.old != "" || m.isClosed() && m.number%3 > 0: // a third of the resolved markets lacks this status
		out["umaResolutionStatus"] = "resolved"
	}
}
