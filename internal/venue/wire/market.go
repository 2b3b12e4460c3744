package wire

import (
	"cmp"

	"oddsgraph/internal/market"
)

// The fields of markets and events in REST responses. The names of Polymarket's Gamma API are among those of the venue API.
var (
	FieldSlug        = NewField("slug", "marketSlug")
	FieldQuestion    = NewField("question", "title")
	FieldDescription = NewField("description")
	FieldImage       = NewField("image", "imageUrl", "icon")
	FieldCategory    = NewField("category").Interned()
	FieldActive      = NewField("active")
	FieldClosed      = NewField("closed")
	FieldOutcomes    = NewField("outcomes")
	// FieldOutcomePrices is a list that is parallel to FieldOutcomes.
	FieldOutcomePrices = NewField("outcomePrices")
	FieldTokens        = NewField("tokens")
	FieldEvents        = NewField("events")

	fieldGroupItemTitle  = NewField("groupItemTitle")
	fieldTags            = NewField("tags")
	fieldTagLabel        = NewField("label", "name", "slug")
	fieldAcceptingOrders = NewField("acceptingOrders")
	fieldStartDate       = NewField("startDate", "startsAt", "startDateIso")
	fieldEndDate         = NewField("endDate", "endsAt", "endDateIso")
	fieldVolume          = NewField("volume", "volumeNum")
	fieldVolume24h       = NewField("volume24h", "volume_24h", "volume24hr", "volume_24hr")
	fieldLiquidity       = NewField("liquidity", "liquidityNum")
	fieldTickSize        = NewField("tickSize", "minimumTickSize", "orderPriceMinTickSize")
	fieldMinOrderSize    = NewField("minOrderSize", "minimumOrderSize", "orderMinSize")

	// These fields are in the object of an event.
	fieldEventID    = NewField("eventId", "id").Interned()
	fieldEventSlug  = NewField("eventSlug", "slug").Interned()
	fieldEventTitle = NewField("eventTitle", "title", "name").Interned()
)

// Market reads a market without its id, event, outcomes, status and resolution.
func (r *Row) Market() *market.Market {
	return &market.Market{
		Slug:            r.Text(FieldSlug),
		Question:        r.Text(FieldQuestion),
		GroupItemTitle:  r.Text(fieldGroupItemTitle),
		Description:     r.Text(FieldDescription),
		Image:           r.Text(FieldImage),
		Category:        r.Text(FieldCategory),
		Tags:            r.Labels(fieldTags, fieldTagLabel),
		AcceptingOrders: r.Bool(fieldAcceptingOrders),
		StartsAt:        r.Time(fieldStartDate),
		EndsAt:          r.Time(fieldEndDate),
		Volume:          r.Decimal(fieldVolume),
		Volume24h:       r.Decimal(fieldVolume24h),
		Liquidity:       r.Decimal(fieldLiquidity),
		TickSize:        r.Decimal(fieldTickSize),
		MinOrderSize:    r.Decimal(fieldMinOrderSize),
		CreatedAt:       r.Time(FieldCreatedAt),
		UpdatedAt:       r.Time(FieldUpdatedAt),
	}
}

// NameEvent sets the empty names of a market's event. The row is that of the event.
func (r *Row) NameEvent(m *market.Market) {
	m.EventID, m.EventSlug = cmp.Or(m.EventID, r.ID(fieldEventID)), cmp.Or(m.EventSlug, r.Text(fieldEventSlug))
	m.EventTitle = cmp.Or(m.EventTitle, r.Text(fieldEventTitle))
}

// Inherit sets the empty fields of a market that its event also has. The row is that of the event.
func (r *Row) Inherit(m *market.Market) {
	r.NameEvent(m)
	m.Image, m.Category = cmp.Or(m.Image, r.Text(FieldImage)), cmp.Or(m.Category, r.Text(FieldCategory))
	if len(m.Tags) == 0 {
		m.Tags = r.Labels(fieldTags, fieldTagLabel)
	}
	if m.StartsAt.IsZero() {
		m.StartsAt = r.Time(fieldStartDate)
	}
	if m.EndsAt.IsZero() {
		m.EndsAt = r.Time(fieldEndDate)
	}
}
