package polymarket

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/demo"
	"oddsgraph/internal/demo/server"
)

// Limits of the Gamma API. maxMarkets and maxEvents are the maximum numbers of rows on a page. maxFilter is the maximum number of
// identifiers in a filter. searchPage is the default number of events on a page of search results.
const (
	maxMarkets = 100
	maxEvents  = 500
	maxFilter  = 100
	searchPage = 20
)

const gammaTime = "2006-01-02 15:04:05-07"

// sortKeys maps a value of the query parameter "order" to the function that returns a market's sort key.
var sortKeys = map[string]func(*market) int64{
	"":             func(m *market) int64 { return int64(m.number) },
	"id":           func(m *market) int64 { return int64(m.number) },
	"volume":       func(m *market) int64 { return int64(m.state.Volume) },
	"volumeNum":    func(m *market) int64 { return int64(m.state.Volume) },
	"volume24hr":   func(m *market) int64 { return int64(m.state.Volume24h) },
	"liquidity":    func(m *market) int64 { return int64(m.state.Liquidity) },
	"liquidityNum": func(m *market) int64 { return int64(m.state.Liquidity) },
	"startDate":    func(m *market) int64 { return m.state.StartAt.Unix() },
	"endDate":      func(m *market) int64 { return m.state.EndAt.Unix() },
	orderDayChange: func(m *market) int64 { return int64(m.dayChange) },
}

const orderDayChange = "oneDayPriceChange"

// dayChanges returns the changes of prices in the last 24 hours, by the tokens of the demo venue.
func (v *Venue) dayChanges() map[string]demo.Price {
	changes, now := make(map[string]demo.Price), v.Clock.Now()
	for _, m := range v.Engine().Markets() {
		for _, id := range m.TokenIDs {
			if points := v.Engine().History(id, now.Add(-24*time.Hour), now); len(points) > 0 {
				changes[id] = points[0].Price - points[len(points)-1].Price
			}
		}
	}
	return changes
}

// answerMarkets answers a page of markets. With closed=true the page has only closed markets. Without closed=true it has no closed
// markets, even if the request names them. Markets that the request names by ids have a random order, as at Polymarket.
func (v *Venue) answerMarkets(r *request) any {
	var changes map[string]demo.Price
	if r.Get("order") == orderDayChange {
		changes = v.dayChanges()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if changes != nil {
		for _, m := range v.markets {
			if len(m.demoTokens) > 0 {
				m.dayChange = changes[m.demoTokens[0]]
			}
		}
	}
	limit := pageLimit(r, 20, maxMarkets)
	key, ok := sortKeys[r.Get("order")]
	if !ok {
		return r.Refuse(invalid("order fields are not valid"))
	}
	list := v.filteredMarkets(r)
	ascending := r.Get("ascending") == "true" || r.Get("order") == ""
	slices.SortStableFunc(list, func(a, b *market) int {
		order := cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a.number, b.number))
		if ascending {
			return order
		}
		return -order
	})
	after := r.cursor("after_cursor")
	if r.Refused() {
		return nil
	}
	if after > 0 { // the number of the last market of the previous page, plus 1
		if i := slices.IndexFunc(list, func(m *market) bool { return m.number == int(after)-1 }); i >= 0 {
			list = list[i+1:]
		}
	}
	out := object{}
	if len(list) > limit {
		list = list[:limit]
		out["next_cursor"] = server.Cursor(uint64(list[limit-1].number) + 1)
	} else {
		repeatCursor(r, out)
	}
	if r.Keys > 1 {
		v.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	rows := make([]object, len(list))
	for i, m := range list {
		rows[i] = m.gamma()
		rows[i]["events"] = []object{m.event.gamma(false)}
		if r.Get("include_tag") == "true" {
			rows[i]["tags"] = v.tagsOf(m)
		}
	}
	out["markets"] = rows
	return out
}

func pageLimit(r *request, fallback, greatest int) int {
	if r.Query.Has("offset") {
		r.Refuse(invalid("offset is not supported; use after_cursor"))
	}
	return r.integer("limit", fallback, greatest)
}

// filteredMarkets returns the markets that match the filters of a request, in listing order.
func (v *Venue) filteredMarkets(r *request) (out []*market) {
	ids := map[string][]string{}
	for _, name := range []string{"condition_ids", "clob_token_ids", "position_ids", "slug", "id"} {
		if list := r.list(name); len(list) > 0 {
			if ids[name] = list; len(list) > maxFilter {
				r.Refuse(invalid("%s takes at most %d values", name, maxFilter))
				return nil
			}
			r.Keys = max(r.Keys, len(list))
		}
	}
	from, until := readDate(r.Get("end_date_min"), time.Time{}), readDate(r.Get("end_date_max"), distantFuture)
	tag := r.Get("tag_id")
	for _, m := range v.markets {
		if (r.Get("closed") == "true") != m.isClosed() ||
			m.state.EndAt.Before(from) || m.state.EndAt.After(until) ||
			tag != "" && !slices.ContainsFunc(v.tagsOf(m), func(t object) bool { return t["id"] == tag }) {
			continue
		}
		matches := func(name string, own ...string) bool {
			return len(ids[name]) == 0 || slices.ContainsFunc(own, func(id string) bool { return slices.Contains(ids[name], id) })
		}
		clob, positions := m.tokenIDs[:], []string(nil)
		if m.version == versionV2 {
			clob, positions = m.oldTokenIDs, m.tokenIDs[:]
		}
		if matches("condition_ids", m.gammaCondition()) && matches("clob_token_ids", clob...) && matches("position_ids", positions...) &&
			matches("slug", m.slug) && matches("id", m.id) {
			out = append(out, m)
		}
	}
	return out
}

var distantFuture = time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC)

// readDate parses a date or a date-time. It returns otherwise if s is neither.
func readDate(s string, otherwise time.Time) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return otherwise
}

func (v *Venue) answerEvents(r *request) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	limit := pageLimit(r, 20, maxEvents)
	after := r.cursor("after_cursor")
	list := v.filteredEvents(r)
	if after > 0 { // the number of the last event of the previous page, plus 1
		if i := slices.IndexFunc(list, func(e *event) bool { return e == v.events[min(int(after), len(v.events))-1] }); i >= 0 {
			list = list[i+1:]
		}
	}
	out, rows := object{}, []object{}
	for _, e := range list {
		if len(rows) == limit {
			break
		}
		rows = append(rows, v.wholeEvent(e, func(*market) bool { return true }))
	}
	if len(list) > limit {
		out["next_cursor"] = server.Cursor(uint64(slices.Index(v.events, list[limit-1])) + 1)
	}
	if out["next_cursor"] == nil {
		repeatCursor(r, out)
	}
	out["events"] = rows
	return out
}

// repeatCursor adds the cursor of the last page of a list to this page, as users of Polymarket report. The first page of a list has
// no cursor.
func repeatCursor(r *request, out object) {
	if cursor := r.Get("after_cursor"); cursor != "" {
		out["next_cursor"] = cursor
	}
}

// filteredEvents returns the events that match the filters of a request, in the requested order.
func (v *Venue) filteredEvents(r *request) (list []*event) {
	key, ok := sortKeys[r.Get("order")]
	if !ok {
		r.Refuse(invalid("order fields are not valid"))
		return nil
	}
	ids, slugs := r.list("id"), r.list("slug")
	from, until, tag := readDate(r.Get("end_date_min"), time.Time{}), readDate(r.Get("end_date_max"), distantFuture), r.Get("tag_id")
	for _, e := range v.events {
		named := len(ids) == 0 && len(slugs) == 0 || slices.Contains(ids, e.id) || slices.Contains(slugs, e.slug)
		ends := e.markets[0].state.EndAt
		if !named || (r.Get("closed") == "true") != e.isClosed() ||
			ends.Before(from) || ends.After(until) ||
			tag != "" && !slices.ContainsFunc(v.tagsOf(e.markets[0]), func(t object) bool { return t["id"] == tag }) {
			continue
		}
		list = append(list, e)
	}
	if r.Get("order") != "" {
		sum := func(e *event) (sum int64) {
			if strings.HasSuffix(r.Get("order"), "Date") {
				return key(e.markets[0])
			}
			for _, m := range e.markets {
				sum += key(m)
			}
			return sum
		}
		slices.SortStableFunc(list, func(a, b *event) int {
			if r.Get("ascending") == "true" {
				a, b = b, a
			}
			return cmp.Compare(sum(b), sum(a))
		})
	}
	return list
}

// isClosed reports whether all markets of the event are closed.
func (e *event) isClosed() bool {
	return !slices.ContainsFunc(e.markets, func(m *market) bool { return !m.isClosed() })
}

// wholeEvent returns an event with its tags, the markets for which keep returns true, and the placeholder if the event has one.
func (v *Venue) wholeEvent(e *event, keep func(*market) bool) object {
	out := e.gamma(true)
	rows := []object{}
	for _, m := range e.markets {
		if keep(m) {
			rows = append(rows, m.gamma())
		}
	}
	if e.augmented() {
		rows = append(rows, e.placeholder())
	}
	out["markets"], out["tags"] = rows, v.tagsOf(e.markets[0])
	return out
}

// augmented reports whether the event has a placeholder for an outcome that has no name yet.
func (e *event) augmented() bool { return e.negRisk && e.markets[0].number%3 == 0 }

// placeholder returns a market without a name. This market is not active and does not trade, and only wholeEvent adds it to an answer.
func (e *event) placeholder() object {
	m := *e.markets[0]
	m.group, m.question, m.slug, m.last = "Outcome A", "Outcome A: "+e.title, e.slug+"-outcome-a", [2]lastTrade{}
	m.conditionID = "0x" + digest("placeholder", e.id)
	m.tokenIDs = [2]string{tokenID(m.conditionID, 0), tokenID(m.conditionID, 1)}
	m.id = strconv.Itoa(900_000 + m.number)
	m.state.Status, m.state.Winner, m.book, m.price = "UPCOMING", -1, book{}, payout/2
	m.state.Volume, m.state.Volume24h, m.state.Liquidity = 0, 0, 0
	out := m.gamma()
	out["active"] = false
	return out
}

// answerSearch answers a page of the events that have a market with all words of the query. events_status=active omits closed
// events, and events_status=resolved omits open events. keep_closed_markets=1 includes the closed markets of open events.
func (v *Venue) answerSearch(r *request) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	words := strings.Fields(strings.ToLower(r.Get("q")))
	if len(words) == 0 {
		return r.Refuse(invalid("q is required"))
	}
	page := r.integer("page", 1, 1_000_000)
	limit := r.integer("limit_per_type", searchPage, maxMarkets)
	var found []*event
	for _, e := range v.events {
		status := r.Get("events_status")
		if status == "active" && e.isClosed() || status == "resolved" && !e.isClosed() {
			continue
		}
		if slices.ContainsFunc(e.markets, func(m *market) bool { return m.has(words) }) {
			found = append(found, e)
		}
	}
	total, first := len(found), min((page-1)*limit, len(found))
	found = found[first:min(first+limit, total)]
	rows := []object{}
	for _, e := range found {
		rows = append(rows, v.wholeEvent(e, func(m *market) bool { return e.isClosed() || !m.isClosed() || r.Get("keep_closed_markets") == "1" }))
	}
	return object{"events": rows, "pagination": object{"hasMore": first+limit < total, "totalResults": total}}
}

// has reports whether each element of words is a prefix of a word in the texts of the market.
func (m *market) has(words []string) bool {
	text := " " + strings.ReplaceAll(slugOf(m.question+" "+m.group+" "+m.event.title+" "+strings.Join(m.state.Tags, " ")), "-", " ")
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, " "+strings.ReplaceAll(slugOf(w), "-", " ")) })
}

func (v *Venue) answerTag(r *request) any {
	if tag := v.tags[r.PathValue("slug")]; tag != nil {
		return tag
	}
	return r.Refuse(&refusal{Status: http.StatusNotFound, Body: object{"type": "not found error", "error": "slug not found"}})
}

func (v *Venue) tagsOf(m *market) []object {
	out := make([]object, len(m.state.Tags))
	for i, tag := range m.state.Tags {
		out[i] = v.tags[slugOf(tag)]
	}
	return out
}

// gamma returns the event in Gamma's form, without markets and tags. If whole is false, it omits negRiskMarketID, as Gamma does in
// an event inside a market.
func (e *event) gamma(whole bool) object {
	first := e.markets[0].state
	volume, day, liquidity := demo.Money(0), demo.Money(0), demo.Money(0)
	for _, m := range e.markets {
		volume, day, liquidity = volume+m.state.Volume, day+m.state.Volume24h, liquidity+m.state.Liquidity
	}
	out := object{
		"id": e.id, "ticker": e.slug, "slug": e.slug, "title": e.title, "description": first.Description, "resolutionSource": "",
		"startDate": iso(first.StartAt), "creationDate": iso(first.StartAt), "endDate": iso(first.EndAt), "createdAt": iso(first.StartAt),
		"updatedAt": iso(first.UpdatedAt), "image": e.markets[0].picture(), "icon": e.markets[0].picture(), "active": true, "closed": e.isClosed(),
		"archived": false, "new": false, "featured": false, "restricted": true, "liquidity": jsonNumber(liquidity), "volume": jsonNumber(volume),
		"openInterest": 0, "competitive": jsonNumber(payout / 2), "volume24hr": jsonNumber(day), "volume1wk": jsonNumber(day * 7), "volume1mo": jsonNumber(volume),
		"volume1yr": jsonNumber(volume), "enableOrderBook": true, "liquidityClob": jsonNumber(liquidity), "negRisk": e.negRisk, "commentCount": 0,
		"cyom": false, "showAllOutcomes": true, "showMarketImages": true, "enableNegRisk": e.negRisk, "automaticallyActive": true,
		"negRiskAugmented": e.augmented(), "pendingDeployment": false, "deploying": false, "requiresTranslation": false,
	}
	if e.negRisk && whole {
		out["negRiskMarketID"] = e.markets[0].negRiskID()
	}
	return out
}

func (m *market) gamma() object {
	s := m.state
	bid, ask := m.book.top()
	out := object{
		"id": m.id, "question": m.question, "conditionId": m.gammaCondition(), "slug": m.slug, "resolutionSource": "",
		"startDate": iso(s.StartAt), "endDate": iso(s.EndAt), "createdAt": iso(s.StartAt), "updatedAt": iso(s.UpdatedAt),
		"startDateIso": s.StartAt.UTC().Format(time.DateOnly), "endDateIso": s.EndAt.UTC().Format(time.DateOnly),
		"image": m.picture(), "icon": m.picture(), "description": s.Description, "groupItemTitle": m.group,
		"groupItemThreshold": strconv.Itoa(m.outcome), "questionID": "0x" + digest("question", m.conditionID), "marketMakerAddress": "",
		"outcomes": jsonText(m.labels), "outcomePrices": jsonText([2]string{m.displayPrice(0).String(), m.displayPrice(1).String()}),
		"volume": s.Volume.String(), "liquidity": s.Liquidity.String(), "volumeNum": jsonNumber(s.Volume), "liquidityNum": jsonNumber(s.Liquidity),
		"volume24hr": jsonNumber(s.Volume24h), "volume1wk": jsonNumber(s.Volume24h * 7), "volume1mo": jsonNumber(s.Volume), "volume1yr": jsonNumber(s.Volume),
		"volume24hrClob": jsonNumber(s.Volume24h), "volume1wkClob": jsonNumber(s.Volume24h * 7), "volume1moClob": jsonNumber(s.Volume),
		"volume1yrClob": jsonNumber(s.Volume), "volumeClob": jsonNumber(s.Volume), "liquidityClob": jsonNumber(s.Liquidity),
		"active": true, "closed": m.isClosed(), "archived": false, "new": false, "featured": false, "restricted": true, "hasReviewedDates": true,
		"enableOrderBook": true, "acceptingOrders": m.hasBooks(), "acceptingOrdersTimestamp": iso(s.StartAt),
		"orderPriceMinTickSize": jsonNumber(s.TickSize), "orderMinSize": jsonNumber(s.MinOrder), "negRisk": m.event.negRisk, "negRiskOther": false,
		"ready": false, "funded": false, "cyom": false, "approved": true, "pagerDutyNotificationEnabled": false, "competitive": jsonNumber(payout / 2),
		"rewardsMinSize": 20, "rewardsMaxSpread": jsonNumber(demo.Price(35_000)), "spread": jsonNumber(ask - bid), "bestBid": jsonNumber(bid), "bestAsk": jsonNumber(ask),
		"automaticallyActive": true, "clearBookOnStart": true, "manualActivation": false, "umaResolutionStatuses": "[]", "pendingDeployment": false,
		"deploying": false, "rfqEnabled": false, "holdingRewardsEnabled": false, "feesEnabled": false, "requiresTranslation": false, "feeType": nil,
	}
	if m.event.negRisk {
		out["negRiskMarketID"], out["negRiskRequestID"] = m.negRiskID(), "0x"+digest("request", m.conditionID)
	}
	if m.dayChange != 0 { // as in recorded responses
		out[orderDayChange] = jsonNumber(m.dayChange)
	}
	if m.last[0].side != "" {
		out["lastTradePrice"] = jsonNumber(m.last[0].price)
	}
	m.tokenMembers(out)
	m.resolutionMembers(out)
	return out
}

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// jsonText returns the JSON of value as a string, because Gamma sends a list as a string that contains JSON.
func jsonText(value any) string { return string(server.Encode(value)) }
