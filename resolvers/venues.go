package resolvers

import (
	"context"
	"strings"

	"oddsgraph/internal/market"
)

// venueOf returns the venue to which an id belongs.
func (r *Resolver) venueOf(id string) *Venue { return &r.Venues[r.Names.Find(id)] }

// venueName returns the value of the fields venue for an object with an id. It is nil for the generic driver as the first venue.
func (r *Resolver) venueName(id string) *string {
	if v := r.venueOf(id); v.Name != "" {
		return &v.Title
	}
	return nil
}

// nameInIDs returns the name with which the ids of a venue begin. An argument gives the title of the venue, or nil for the first venue,
// whose name in ids is empty.
func (r *Resolver) nameInIDs(title *string) (string, error) {
	if title == nil || *title == r.Venues[0].Title {
		return "", nil
	}
	var titles []string
	for i, v := range r.Venues {
		if *title == v.Title {
			return r.Names[i], nil
		}
		titles = append(titles, v.Title)
	}
	return "", badInput("there is no venue %q; the venues are: %s", *title, strings.Join(titles, ", "))
}

// account returns the address of an account of a venue, which begins with the name of a further venue.
func (r *Resolver) account(a market.Address, venue *string) (market.Address, error) {
	name, err := r.nameInIDs(venue)
	return market.Address(market.Qualify(name, string(a))), err
}

// followed is like account. It returns an error if the client of ctx may not read the account.
func (r *Resolver) followed(ctx context.Context, a market.Address, venue *string) (market.Address, error) {
	a, err := r.account(a, venue)
	if err != nil {
		return "", err
	}
	return a, r.checkAccess(ctx, a)
}

// parseAddress parses the address of an account in a global id.
func (r *Resolver) parseAddress(s string) (market.Address, error) {
	name, own := r.cut(s)
	a, err := market.ParseAddress(own)
	return market.Address(market.Qualify(name, string(a))), err
}

// cashError returns the CashError of an account's venue.
func (r *Resolver) cashError(a market.Address) error {
	return market.AtVenue(r.Names.Of(string(a)), r.venueOf(string(a)).CashError)
}

// cut splits an id into the name with which the ids of its venue begin, which is empty for the first venue, and the venue's own id.
func (r *Resolver) cut(id string) (name, own string) {
	name = r.Names.Of(id)
	own, _ = market.CutVenue(name, id)
	return name, own
}
