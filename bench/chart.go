package main

import (
	"fmt"
	"html"
	"strings"
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
	var d drawing
	d.text("title", 12, 24, chartTitle)
	for i, bar := range bars {
		x := 12 + i*220
		d.bar(bar.server, x, 40, 11, "")
		d.text("", x+17, 50, bar.label)
	}
	for _, g := range groups {
		d.text("", 12, y+barHeight+4, g.name)
		d.text("small", 40, y+barHeight+4, g.about)
		for _, bar := range bars {
			share := median(b.runs(row{querySection, b.modes()[0].name, g.name, bar.server}, ofLimit))
			if share == 0 {
				continue
			}
			width := max(min(share, mostShare)*fullBar, 1)
			d.bar(bar.server, chartLeft, y, width, fmt.Sprintf("%s: %.3f", bar.label, share))
			d.text("small", chartLeft+int(width)+5, y+barHeight-3, fmt.Sprintf("%.2g", share))
			y += barHeight
		}
		y += groupSpace
	}
	d = fmt.Appendf(d, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", chartLeft+fullBar, chartTop-8, chartLeft+fullBar, y-groupSpace+4)
	d.text("small", chartLeft+fullBar-42, chartTop-12, "bare handler: 1")
	d.text("small", 12, y+16, b.machine)
	return d.svg(chartTitle, y+30)
}

// drawing is the body of a chart in SVG.
type drawing []byte

func (d *drawing) text(class string, x, y int, s string) {
	*d = fmt.Appendf(*d, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(s))
}

// bar adds a bar with the colour of a server. The title is shown when a pointer is on the bar.
func (d *drawing) bar(server string, x, y int, width float64, title string) {
	if title != "" {
		title = "<title>" + html.EscapeString(title) + "</title>"
	}
	*d = fmt.Appendf(*d, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\">%s</rect>\n", server, x, y, width, barHeight-2, title)
}

func (d drawing) svg(label string, height int) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=%q>\n<style>%s</style>\n%s</svg>\n",
		chartWidth, height, label, chartStyle, d)
}

const (
	curveTitle = "Processor time of a query, while the working set grows"
	curveFile  = "curve.svg"
)

// curveChart returns a chart of the working sets as SVG: a bar for each, whose length is the processor time of a query.
func (b *bench) curveChart() string {
	most := 0.0
	for _, r := range b.results {
		if r.section == curveSection {
			most = max(most, r.values[cpuPerOp])
		}
	}
	var d drawing
	d.text("title", 12, 24, curveTitle)
	y := chartTop - 20
	for _, r := range b.results {
		if r.section != curveSection {
			continue
		}
		width := max(r.values[cpuPerOp]/most*(fullBar-100), 1)
		d.text("", 12, y, curveLabel.Replace(r.benchmark))
		d.bar(r.server, chartLeft, y-barHeight+3, width, "")
		d.text("small", chartLeft+int(width)+5, y, fmt.Sprintf("%.0f µs, %.2f calls", r.values[cpuPerOp]/cpuPerOp.scale, r.values[callsPerOp]))
		y += barHeight + groupSpace/2
	}
	d.text("small", 12, y+4, b.machine)
	return d.svg(curveTitle, y+18)
}

var curveLabel = strings.NewReplacer("Curve/of=V1/n=", "V1, portfolios: ", "Curve/of=V2/n=", "V2, market pages: ")
