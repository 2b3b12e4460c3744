package generic

import (
	"cmp"
	"sync/atomic"
)

// DetailNames are the names of the parameters of market-details. For an empty name, the client tries the names that venues use.
type DetailNames struct {
	// ID, Slug and TokenID name the parameters for one market. IDs and TokenIDs name the parameters for several ids, separated by
	// commas.
	ID, IDs, Slug, TokenID, TokenIDs string
}

// parameter is a parameter for one id, with the names that venues use for the parameter. It is safe for concurrent use once its
// names are set.
type parameter struct {
	names []string
	// known is the parameter name in the last call that found an id. It is nil if no call has found an id yet, or if the method
	// doubt has forgotten the name.
	known atomic.Pointer[string]
}

// candidates returns the known name. If no name is known, candidates returns all names.
func (p *parameter) candidates() []string {
	if known := p.known.Load(); known != nil {
		return []string{*known}
	}
	return p.names
}

func (p *parameter) confirm(name string) { p.known.Store(&name) }

// doubt is called after the venue has refused the only candidate. If the parameter has several names, doubt forgets the known name.
func (p *parameter) doubt() {
	if len(p.names) > 1 {
		p.known.Store(nil)
	}
}

// setParameterNames sets the names of the parameters that the venue's documentation does not name.
func (c *Client) setParameterNames(n DetailNames) {
	configuredOr := func(configured string, names ...string) []string {
		if configured != "" {
			return []string{configured}
		}
		return names
	}
	c.marketIDParam.names = configuredOr(n.ID, "marketId", "id")
	c.marketTokenParam.names = configuredOr(n.TokenID, "tokenId")
	c.marketSlugParam.names = configuredOr(n.Slug, "slug")
	c.marketIDsSupport.name, c.marketTokensSupport.name, c.spreadTokensSupport.name = cmp.Or(n.IDs, "ids"), cmp.Or(n.TokenIDs, "tokenIds"), "tokenIds"
}

// tokenIDParam is the single parameter of prices and spreads, which the venue's documentation names.
var tokenIDParam = parameter{names: []string{"tokenId"}}
