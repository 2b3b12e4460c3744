package queries

import "oddsgraph/internal/market"

// EventPage is one page of a search for events. A page contains an event at most once. Several pages may contain the same event.
type EventPage struct {
	Events []FoundEvent
	// Next is the value of Search.Page for the next page. It is empty on the last page.
	Next    string
	LeftOut market.LeftOut
}

// FoundEvent is an event of a search.
type FoundEvent struct {
	*market.Event
	// Whole reports that Event has all its markets. If Whole is false, Event has only its id, slug, title and category.
	Whole bool
	// Matches are the markets of the event that match the search, as summaries. If Whole is true, they are in the order of
	// Event.Markets. Otherwise they are in the order of the search results.
	Matches []*market.Market
}

// GroupByEvent groups the markets of a page by event. The events are in the order in which their first markets are on the page.
// GroupByEvent skips markets without an event id.
func GroupByEvent(page *SearchPage) *EventPage {
	out := &EventPage{Next: page.Next, LeftOut: page.LeftOut}
	at := make(map[string]int)
	for _, m := range page.Markets {
		if m.EventID == "" {
			continue
		}
		i, known := at[m.EventID]
		if !known {
			i = len(out.Events)
			at[m.EventID] = i
			out.Events = append(out.Events, FoundEvent{Event: &market.Event{EventID: m.EventID, Slug: m.EventSlug, Title: m.EventTitle, Category: m.Category}})
		}
		out.Events[i].Matches = append(out.Events[i].Matches, m)
	}
	return out
}

const maxCategoryPages = 5

// CountCategories counts the open markets of each category on the first pages of a search. The function read returns one page. Its
// parameter is Search.Page, which is empty for the first page.
func CountCategories(read func(page string) (*SearchPage, error)) (*Categories, error) {
	counted := categoryCount{make(map[string]bool), make(map[string]*Category), make(map[string]*Category)}
	next, complete := "", true
	for range maxCategoryPages {
		page, err := read(next)
		if err != nil {
			return nil, err
		}
		counted.add(page.Markets)
		complete = complete && len(page.LeftOut) == 0
		if next = page.Next; next == "" {
			break
		}
	}
	return &Categories{List: counted.result(complete && next == "")}, nil
}
