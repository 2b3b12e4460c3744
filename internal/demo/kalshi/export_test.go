package kalshi

import "slices"

// QuietTickers returns the tickers of the open markets in which nobody trades and whose books never change.
func (v *Venue) QuietTickers() []string {
	return slices.DeleteFunc(v.Tickers(), func(ticker string) bool { return !v.byTicker[ticker].quiet })
}
