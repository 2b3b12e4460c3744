//go:build unix

package e2e

// venueServes has the parts of the graph that the checks of the board and of the kit use, and that not every venue serves. The checks get
// it as JSON in SERVES.
type venueServes struct {
	Driver   string `json:"driver"`
	Sort     bool   `json:"sort"`     // lists of markets in an order
	Search   bool   `json:"search"`   // by text
	Accounts bool   `json:"accounts"` // of all wallets, without credentials
	Orders   bool   `json:"orders"`
}

// simulatedVenues are the venues with a simulator.
var simulatedVenues = []venueServes{
	{Driver: "polymarket", Sort: true, Search: true, Accounts: true},
	{Driver: "kalshi"},
}

// args returns the arguments of a service over the simulator, whose market moves.
func (s venueServes) args() []string {
	return []string{"--demo-driver=" + s.Driver, "--venue-driver=" + s.Driver, "--demo-still=false", "--demo-markets=60"}
}
