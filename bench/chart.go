package main

import (
	"fmt"
	"html"
	"io"
	"time"
)

// bar is the bar of one server. share is the CPU time per query of the program limit, divided by the CPU time of the server.
type bar struct {
	class, label string
	share        float64
}

// bars is the group of bars of one workload.
type bars struct {
	name, about string
	bars        []bar
}

// chart draws a group of bars for each workload, from the measurements without venue latency. It draws nothing and returns false
// if a table or a row of the program limit is missing.
func (r *report) chart(out io.Writer) bool {
	still, moving := r.table(0, false), r.table(0, true)
	if still == nil || moving == nil {
		return false
	}
	var groups []bars
	for _, w := range []struct{ name, about string }{
		{"W1", "same portfolio"}, {"W2", "same market page"}, {"W3", "same 50 prices"}, {"W4", "{ __typename }"},
		{"V1", "many portfolios"}, {"V2", "many market pages"}, {"V3", "many price boards"},
	} {
		limit := still.row(w.name, limitServer)
		if limit == nil {
			return false
		}
		g := bars{name: w.name, about: w.about}
		add := func(t *table, server, class, label string) {
			if row := t.row(w.name, server); row != nil {
				g.bars = append(g.bars, bar{class, label, ratio(t.row(w.name, limitServer), row, cpu)})
			}
		}
		add(still, plainServer, "plain", "gqlgen + dataloader")
		if limit.workload.varied {
			add(still, uncachedServer, "executed", "oddsgraph, each query executed")
			add(still, graphServer, "cached", "oddsgraph, with its response cache")
		} else {
			add(still, graphServer, "cached", "oddsgraph, with its response cache")
			add(moving, graphServer, "moving", "oddsgraph, each price moving 10 times a second")
		}
		groups = append(groups, g)
	}
	draw(out, groups, r.machine)
	return true
}

func (r *report) table(latency time.Duration, moving bool) *table {
	for _, t := range r.tables {
		if t.latency == latency && t.moving == moving {
			return t
		}
	}
	return nil
}

// The measures of the chart, in pixels.
const (
	chartWidth = 760
	chartLeft  = 170
	chartTop   = 96
	barHeight  = 13
	groupSpace = 12
	fullBar    = 480 // length of a bar with a share of 1
	mostShare  = 1.1 // bars with a greater share are cut off here
)

const chartStyle = `
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px } .small { font-size: 11px; fill: #59636e }
.plain { fill: #8c959f } .executed { fill: #0969da } .cached { fill: #1a7f37 } .moving { fill: #4ac26b }
line { stroke: #d1242f; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small { fill: #9198a1 } }
`

// draw writes the chart as SVG.
func draw(out io.Writer, groups []bars, machine string) {
	height := chartTop + 40
	for _, g := range groups {
		height += len(g.bars)*barHeight + groupSpace
	}
	text := func(class string, x, y int, s string) {
		fmt.Fprintf(out, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(s))
	}
	const title = "Closeness to a bare HTTP handler: its CPU time a query ÷ the server's"
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=%q>\n<style>%s</style>\n",
		chartWidth, height, title, chartStyle)
	text("title", 12, 24, title)
	legend := map[string]string{}
	for _, g := range groups {
		for _, b := range g.bars {
			legend[b.class] = b.label
		}
	}
	for i, class := range []string{"plain", "executed", "cached", "moving"} {
		if legend[class] != "" {
			x, y := 12+i%2*300, 40+i/2*18
			fmt.Fprintf(out, "<rect class=%q x=\"%d\" y=\"%d\" width=\"11\" height=\"11\"/>\n", class, x, y)
			text("", x+17, y+10, legend[class])
		}
	}
	y := chartTop
	for _, g := range groups {
		middle := y + len(g.bars)*barHeight/2
		text("", 12, middle+4, g.name)
		text("small", 40, middle+4, g.about)
		for _, b := range g.bars {
			width := max(min(b.share, mostShare)*fullBar, 1)
			fmt.Fprintf(out, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>%s: %.3f</title></rect>\n",
				b.class, chartLeft, y, width, barHeight-2, html.EscapeString(b.label), b.share)
			text("small", chartLeft+int(width)+5, y+barHeight-3, shareLabel(b.share))
			y += barHeight
		}
		y += groupSpace
	}
	fmt.Fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", chartLeft+fullBar, chartTop-8, chartLeft+fullBar, y-groupSpace+4)
	text("small", chartLeft+fullBar-42, chartTop-12, "bare handler: 1")
	text("small", 12, height-14, machine)
	fmt.Fprintln(out, "</svg>")
}

func shareLabel(share float64) string {
	if share < .1 {
		return fmt.Sprintf("%.3f", share)
	}
	return fmt.Sprintf("%.2f", share)
}
