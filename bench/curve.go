package main

import (
	"fmt"
	"html"
	"strings"
)

const (
	curveTitle = "Processor time of a query, while the working set grows"
	curveFile  = "curve.svg"
)

// curveChart returns a chart of the working sets as SVG: a bar for each, whose length is the processor time of a query.
func (b *bench) curveChart() string {
	var rows []result
	most := 0.0
	for _, r := range b.results {
		if r.section == curveSection {
			rows = append(rows, r)
			most = max(most, median(b.runs(r.row, cpuPerOp)))
		}
	}
	y := chartTop - 20
	var body []byte
	text := func(class string, x int, s string) {
		body = fmt.Appendf(body, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(s))
	}
	for _, r := range rows {
		cpu, calls := median(b.runs(r.row, cpuPerOp)), median(b.runs(r.row, callsPerOp))
		label := strings.NewReplacer("Curve/of=V1/n=", "V1, portfolios: ", "Curve/of=V2/n=", "V2, market pages: ").Replace(r.benchmark)
		text("", 12, label)
		width := max(cpu/most*(fullBar-100), 1)
		body = fmt.Appendf(body, "<rect class=\"oddsgraph\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", chartLeft, y-barHeight+3, width, barHeight-2)
		text("small", chartLeft+int(width)+5, fmt.Sprintf("%.0f µs, %.2f calls", cpu/cpuPerOp.scale, calls))
		y += barHeight + groupSpace/2
	}
	y += 4
	text("small", 12, b.machine)
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=%q>\n<style>%s</style>\n<text class=\"title\" x=\"12\" y=\"24\">%s</text>\n%s</svg>\n",
		chartWidth, y+14, curveTitle, chartStyle, curveTitle, body)
}
