package guard

// Cost is what executing an operation takes.
type Cost struct {
	// Points are one for each value shown and 1,000 for each upstream call.
	Points int64
	// Calls is about how many upstream calls are made when nothing that is needed is cached or streamed. It is an upper
	// estimate, for markets of two outcomes and accounts with up to 50 positions.
	Calls int64
}

// Cost returns what the operation costs with variables as validation returns them: checked, with defaults filled in. It is an
// error, beside the cost, when that is past the limit. A subscription costs what its first events do, one for each id that it
// follows.
func (p *Plan) Cost(variables map[string]any) (Cost, error) {
	var few [128]int64
	e := evaluation{Plan: p, variables: variables}
	scratch := few[:]
	if n := len(p.amounts) + len(p.steps) + len(p.groups); n > len(few) {
		scratch = make([]int64, n)
	}
	e.amounts, scratch = scratch[:len(p.amounts)], scratch[len(p.amounts):]
	e.objects, scratch = scratch[:len(p.steps)], scratch[len(p.steps):]
	e.keys = scratch[:len(p.groups)]
	cost := e.run()
	if cost.Points <= p.limit {
		return cost, nil
	}
	at, calls := e.largest()
	const text = "the operation costs %d points, with about %d upstream calls; at most %d are accepted. "
	const advice = ": ask for fewer items at once"
	if calls > 0 {
		return cost, refuse(RuleCost, text+"%s costs most of all, with about %d calls"+advice, cost.Points, cost.Calls, p.limit, p.path(at), calls)
	}
	return cost, refuse(RuleCost, text+"%s costs most of all, with %d values"+advice, cost.Points, cost.Calls, p.limit, p.path(at), e.values(at))
}

// evaluation is a plan with one set of variables.
type evaluation struct {
	*Plan
	variables map[string]any
	amounts   []int64
	// objects is the number of objects of each step, and keys, 0 at first, that of the things that each group of batched
	// reads reads.
	objects, keys []int64
}

func (e *evaluation) run() (c Cost) {
	for i := range e.Plan.amounts {
		a := &e.Plan.amounts[i]
		e.amounts[i] = min(max(ofVariable(e.variables[a.variable], a.of, a.otherwise), 0), a.limit)
	}
	for i := range e.steps {
		s := &e.steps[i]
		switch {
		case s.parent == none:
			e.objects[i] = 1
		case e.met(s.when):
			e.objects[i] = mulSat(e.objects[s.parent], e.number(s.items))
		default:
			e.objects[i] = 0
		}
		c.Points = addSat(c.Points, e.values(int32(i)))
	}
	for i := range e.reads {
		if r := &e.reads[i]; r.group == none {
			c.Calls = addSat(c.Calls, e.times(r))
		} else {
			e.keys[r.group] = addSat(e.keys[r.group], e.times(r))
		}
	}
	for g, keys := range e.keys {
		waves := max(e.waves(e.groups[g]), 1)
		c.Calls = addSat(c.Calls, mulSat(waves, ceilDiv(ceilDiv(keys, waves), batch)))
	}
	c.Points = addSat(c.Points, mulSat(c.Calls, callPoints))
	return c
}

func (e *evaluation) number(n number) int64 {
	if n.amount == none {
		return n.constant
	}
	return e.amounts[n.amount]
}

// met tells whether conditions may be met.
func (e *evaluation) met(when []condition) bool {
	for _, c := range when {
		if is, ok := e.variables[c.variable].(bool); ok && is != c.include {
			return false
		}
	}
	return true
}

// values returns how many values a step shows.
func (e *evaluation) values(at int32) int64 { return mulSat(e.objects[at], e.steps[at].values) }

// times returns how often a read is made.
func (e *evaluation) times(r *upstreamRead) int64 {
	switch {
	case !r.ofParent:
		return mulSat(e.objects[r.step], e.number(r.times))
	case e.met(r.when):
		return mulSat(e.objects[e.steps[r.step].parent], e.number(r.times))
	default:
		return 0
	}
}

// waves returns in how many waves what is known in one of the plan's waves comes.
func (e *evaluation) waves(at int32) int64 {
	for ; e.Plan.waves[at].step == none; at = e.Plan.waves[at].parent {
		if e.Plan.waves[at].parent == none {
			return 1
		}
	}
	return e.objects[e.steps[e.Plan.waves[at].step].parent]
}

// largest returns the step that costs most, with its upstream calls.
func (e *evaluation) largest() (at int32, calls int64) {
	byStep := make([]int64, len(e.steps))
	for i := range e.reads {
		r := &e.reads[i]
		n := e.times(r)
		if r.group != none {
			n = ceilDiv(n, batch)
		}
		byStep[r.step] = addSat(byStep[r.step], n)
	}
	var most int64
	for i := range e.steps {
		if points := addSat(e.values(int32(i)), mulSat(byStep[i], callPoints)); i > 0 && points > most {
			at, most = int32(i), points
		}
	}
	return at, byStep[at]
}
