package venue

import (
	"cmp"
	"sync/atomic"
)

// DetailNames are the names of the parameters of market-details. An empty one is found out where the client knows several, and
// else the usual one.
type DetailNames struct {
	// ID, Slug and TokenID name one market; IDs and TokenIDs name several by ids with commas between them.
	ID, IDs, Slug, TokenID, TokenIDs string
}

// parameter is a parameter for one id. The venue knows it by one of several names. It is safe for concurrent use once its
// names are set.
type parameter struct {
	names []string
	// known is the name that was answered with what it asked for.
	known atomic.Pointer[string]
}

// candidates returns the names to ask by, the one that is known first and alone.
func (p *parameter) candidates() []string {
	if known := p.known.Load(); known != nil {
		return []string{*known}
	}
	return p.names
}

// confirm notes that the venue knows a name.
func (p *parameter) confirm(name string) { p.known.Store(&name) }

// doubt forgets a name that was refused, unless there is only one.
func (p *parameter) doubt() {
	if len(p.names) > 1 {
		p.known.Store(nil)
	}
}

// name sets the names of parameters.
func (c *Client) name(n DetailNames) {
	one := func(said string, names ...string) []string {
		if said != "" {
			return []string{said}
		}
		return names
	}
	c.marketID.names = one(n.ID, "marketId", "id")
	c.marketToken.names = one(n.TokenID, "tokenId")
	c.marketSlug.names = one(n.Slug, "slug")
	c.marketIDs.name, c.marketTokens.name, c.spreadTokens.name = cmp.Or(n.IDs, "ids"), cmp.Or(n.TokenIDs, "tokenIds"), "tokenIds"
}

// tokenID is the parameter of endpoints whose description names it.
var tokenID = parameter{names: []string{"tokenId"}}
