package main

import (
	"fmt"
	"html"
)

// The measures of the chart, in pixels.
const (
	chartWidth = 760
	chartLeft  = 170
	chartTop   = 80
	barHeight  = 13
	groupSpace = 12
	fullBar    = 480 // length of a bar with a share of 1
	mostShare  = 1.1 // bars with a greater share are cut off here
)

const (
	chartTitle = "Closeness to a bare HTTP handler: its CPU time a query ÷ the server's"
	chartStyle = `
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px } .small { font-size: 11px; fill: #59636e }
.plain { fill: #8c959f } .uncached { fill: #0969da } .oddsgraph { fill: #1a7f37 }
line { stroke: #d1242f; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small { fill: #9198a1 } }
`
)

// chart returns a chart of the queries over the first venue as SVG. It has a bar for each server except limit.
func (b *bench) chart() string {
	groups := []struct{ name, about string }{
		{"W1", "same portfolio"}, {"W2", "same market page"}, {"W3", "same 50 prices"}, {"W4", "{ __typename }"},
		{"V1", "many portfolios"}, {"V2", "many market pages"}, {"V3", "many price boards"},
	}
	bars := []struct{ server, label string }{
		{plainServer, "gqlgen + dataloader"}, {uncachedServer, "oddsgraph, each query executed"}, {graphServer, "oddsgraph"},
	}
	y := chartTop
	var body []byte
	text := func(class string, x, y int, s string) {
		body = fmt.Appendf(body, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(s))
	}
	text("title", 12, 24, chartTitle)
	for i, bar := range bars {
		x := 12 + i*220
		body = fmt.Appendf(body, "<rect class=%q x=\"%d\" y=\"40\" width=\"11\" height=\"11\"/>\n", bar.server, x)
		text("", x+17, 50, bar.label)
	}
	for _, g := range groups {
		text("", 12, y+barHeight+4, g.name)
		text("small", 40, y+barHeight+4, g.about)
		for _, bar := range bars {
			share := median(b.runs(row{querySection, b.modes()[0].name, g.name, bar.server}, ofLimit))
			if share == 0 {
				continue
			}
			width := max(min(share, mostShare)*fullBar, 1)
			body = fmt.Appendf(body, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>%s: %.3f</title></rect>\n",
				bar.server, chartLeft, y, width, barHeight-2, html.EscapeString(bar.label), share)
			text("small", chartLeft+int(width)+5, y+barHeight-3, fmt.Sprintf("%.2g", share))
			y += barHeight
		}
		y += groupSpace
	}
	body = fmt.Appendf(body, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", chartLeft+fullBar, chartTop-8, chartLeft+fullBar, y-groupSpace+4)
	text("small", chartLeft+fullBar-42, chartTop-12, "bare handler: 1")
	text("small", 12, y+16, b.machine)
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=%q>\n<style>%s</style>\n%s</svg>\n",
		chartWidth, y+30, chartTitle, chartStyle, body)
}
