package limits

// Plan calculates the cost of an operation for any variables. It is immutable and safe for concurrent use.
type Plan struct {
	limit int64
	// amounts are the numbers that variables decide.
	amounts []amount
	// steps are the fields that give objects or cost more than their value. A parent comes before its fields; the first step is
	// the operation.
	steps []step
}

// step is a field of an operation.
type step struct {
	parent int32
	// items is the number of objects that the field gives for each object of the parent.
	items number
	// own is the price of the field for each object of the parent, points that of each object it gives.
	own, points int64
	when        []condition
	// key is the response key.
	key string
}

const none = -1

// number is one of the plan's amounts, or a constant.
type number struct {
	amount   int32
	constant int64
}

func constant(n int64) number { return number{none, n} }

// condition is a @skip or an @include by a variable.
type condition struct {
	variable string
	include  bool
}

// Cost returns the points of the operation for variables as validation returns them: checked, with defaults filled in. If they
// are past the limit it returns an error, too.
func (p *Plan) Cost(variables map[string]any) (points int64, err error) {
	var few [128]int64
	scratch := few[:]
	if n := len(p.amounts) + len(p.steps); n > len(few) {
		scratch = make([]int64, n)
	}
	amounts, objects := scratch[:len(p.amounts)], scratch[len(p.amounts):]
	for i := range p.amounts {
		amounts[i] = p.amounts[i].of(variables[p.amounts[i].variable])
	}
	var largest int32
	var most int64
	for i := range p.steps {
		s := &p.steps[i]
		own, items := int64(0), int64(0)
		switch {
		case s.parent == none:
			items = 1
		case met(s.when, variables):
			n := s.items.constant
			if s.items.amount != none {
				n = amounts[s.items.amount]
			}
			own, items = mulSat(objects[s.parent], s.own), mulSat(objects[s.parent], n)
		}
		objects[i] = items
		cost := addSat(own, mulSat(items, s.points))
		if points = addSat(points, cost); i > 0 && cost > most {
			largest, most = int32(i), cost
		}
	}
	if points > p.limit {
		return points, refuse(RuleCost, "the operation costs %d points; at most %d are accepted. %s costs most of all, %d points: ask for fewer items at once",
			points, p.limit, p.path(largest), most)
	}
	return points, nil
}

// met reports whether conditions may be met.
func met(when []condition, variables map[string]any) bool {
	for _, c := range when {
		if is, ok := variables[c.variable].(bool); ok && is != c.include {
			return false
		}
	}
	return true
}

// path returns the place of a step's field in the response: the end of the path, if it is long.
func (p *Plan) path(at int32) string {
	const enough = 60
	path := p.steps[at].key
	for at = p.steps[at].parent; at > 0; at = p.steps[at].parent {
		if len(path) > enough {
			return "…" + path[len(path)-enough:]
		}
		path = p.steps[at].key + "." + path
	}
	return path
}
