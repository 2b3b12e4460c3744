package venue

import (
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// checkID returns BAD_USER_INPUT if s is not a valid id.
func checkID(e reqctx.Endpoint, s string) error {
	if err := market.CheckID(s); err != nil {
		return badInput(e, "an id has 1 to 256 bytes and no comma, slash or control character")
	}
	return nil
}
