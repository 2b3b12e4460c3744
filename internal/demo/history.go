package demo

// The history of a price is a function of the seed, the token and the time, so the venue stores no history. The live price drifts
// towards the present value of the function, so the end of a chart is near the live price.

// wave is one component of a price's history: noise with a period and a weight in 1024ths of the maximum swing.
type wave struct {
	period millis
	weight int64
}

var waves = [...]wave{
	{21 * day, 400}, {4 * day, 260}, {18 * hour, 160}, {3 * hour, 100}, {20 * minute, 60}, {5 * minute, 40},
}

// swing is the maximum distance of a price from the anchor, which is the mean of the price. It is a percentage of the distance from
// the anchor to 0 or to 1, whichever is nearer.
const swing = 35

// settling is the time before the end of trading during which the price of a resolved market moves to its result.
const settling = 10 * day

// drift returns the generated price at t in ten-thousandths, not rounded to the tick. The price varies around the anchor, which is
// its mean.
func drift(seed uint64, anchor Price, t millis) int64 {
	var n int64
	for k, w := range waves {
		cell := t.floor(w.period)
		a := int64(hash(seed, uint64(k), uint64(cell))%2049) - 1024
		b := int64(hash(seed, uint64(k), uint64(cell+w.period))%2049) - 1024
		f := int64(t - cell)
		n += w.weight * ((a*(int64(w.period)-f) + b*f) / int64(w.period))
	}
	amplitude := int64(min(anchor, payout-anchor)) * swing / 100
	return int64(anchor) + amplitude*n/(1024*1024)
}

// priceAt returns the price of the outcome at t, rounded to the tick and strictly between 0 and 1.
func (m *market) priceAt(outcome int, t millis) Price {
	if t -= m.delay; m.born.closedAt > 0 {
		t = min(t, m.born.closedAt)
	}
	var p int64
	if m.binary() {
		p = drift(m.seed, m.anchors[0], t)
	} else { // before rounding, the prices of all outcomes sum to 1
		var sum, own int64
		for i, a := range m.anchors {
			q := drift(m.seed+uint64(i), a, t)
			sum += q
			if i == outcome {
				own = q
			}
		}
		p = own * int64(payout) / sum
	}
	p += m.offset
	if winner := m.born.winner; winner >= 0 && t > m.born.closedAt-settling {
		end := int64(0)
		if winner == 0 && m.binary() || winner == outcome && !m.binary() {
			end = int64(payout)
		}
		w := int64(t-(m.born.closedAt-settling)) * 1024 / int64(settling)
		p += (end - p) * (w * w / 1024) / 1024
	}
	tick := int64(m.born.tick)
	price := Price(min(max((p+tick/2)/tick, 1), int64(payout)/tick-1) * tick)
	if m.binary() && outcome == 1 {
		return payout - price
	}
	return price
}

func (m *market) volumeAt(outcome int, t, interval millis) Size {
	if m.binary() {
		outcome = 0
	}
	perDay := int64(m.volume24h/dollar) + 10
	typical := perDay * int64(interval) / int64(day) * int64(share)
	typical = max(typical, int64(share))
	return Size(typical * int64(hash(m.seed, uint64(outcome), uint64(t), uint64(interval))%1000) / 500)
}

type point struct {
	at     millis
	price  Price
	volume Size
}

// The intervals between the points of a price history. They are shorter for recent points.
const (
	fineStep, fineWithin = 5 * minute, 2 * day
	hourStep, hourWithin = hour, 30 * day
	dayStep              = day
)

// history returns the outcome's points in [from, until), newest first. There are no points before the market's start, after its
// close or after now.
func (m *market) history(outcome int, from, until, now millis) []point {
	from = max(from, m.startAt)
	last := min(until-1, now)
	if m.closedAt > 0 {
		last = min(last, m.closedAt)
	}
	var points []point
	for _, part := range []struct{ step, from, until millis }{
		{fineStep, now - fineWithin, now + 1},
		{hourStep, now - hourWithin, now - fineWithin},
		{dayStep, from, now - hourWithin},
	} {
		low, high := max(part.from, from), min(part.until-1, last)
		for t := high.floor(part.step); t >= low; t -= part.step {
			points = append(points, point{t, m.priceAt(outcome, t), m.volumeAt(outcome, t, part.step)})
		}
	}
	return points
}

// band returns bounds of the outcome's history. While the price of a resolved market moves to its result, it can leave these
// bounds.
func (m *market) band(outcome int) (low, high Price) {
	if m.binary() {
		a := m.anchors[0]
		amplitude := min(a, payout-a) * swing / 100
		if a += Price(m.offset); outcome == 1 {
			a = payout - a
		}
		return a - amplitude - m.born.tick, a + amplitude + m.born.tick
	}
	// The price is the outcome's drift divided by the sum of the drifts of all outcomes.
	a := m.anchors[outcome]
	low = a*(100-swing)/(100+swing) + Price(m.offset)
	high = min(a*(100+swing)/(100-swing)+Price(m.offset), payout)
	return low - m.born.tick, high + m.born.tick
}
