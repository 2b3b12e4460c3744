package limits

// Plan calculates the cost of an operation for any variables. It is immutable and safe for concurrent use.
type Plan struct {
	limit int64
	// counts are the list sizes that depend on a variable.
	counts []count
	// fields are the fields that return objects, may cost more than 1 point, or have conditions. Each other field adds 1 to the
	// points of its parent. A parent comes before its fields. The first element is the operation itself.
	fields []planField
}

type planField struct {
	parent int32
	// items is the number of objects that the field returns for each object of the parent.
	items number
	// calls is the number of times that own counts, but at least 1.
	calls number
	// own is the cost of the field for each parent object. points is the cost for each object that the field returns.
	own, points int64
	// when contains the conditions of the field. If one of them is not met, the field costs nothing.
	when []condition
	key  string
}

const none = -1

// number is a constant, or the result of one of the plan's counts. The field count is the index in Plan.counts. For a constant,
// it is none.
type number struct {
	count    int32
	constant int64
}

func constant(n int64) number { return number{none, n} }

// in returns the number for the results of the plan's counts.
func (n number) in(counts []int64) int64 {
	if n.count != none {
		return counts[n.count]
	}
	return n.constant
}

// condition is a @skip or @include directive with a variable.
type condition struct {
	variable string
	include  bool
}

// Cost returns the points of the operation. The variables must be validated and include the defaults. If the points exceed the
// limit, Cost also returns an error.
func (p *Plan) Cost(variables map[string]any) (points int64, err error) {
	var small [128]int64
	scratch := small[:]
	if n := len(p.counts) + len(p.fields); n > len(small) {
		scratch = make([]int64, n)
	}
	counts, objects := scratch[:len(p.counts)], scratch[len(p.counts):]
	for i := range p.counts {
		counts[i] = p.counts[i].items(variables[p.counts[i].variable])
	}
	var largest int32
	var most int64
	for i := range p.fields {
		f := &p.fields[i]
		own, items := int64(0), int64(0)
		switch {
		case f.parent == none:
			items = 1
		case allMet(f.when, variables):
			own = mulSat(mulSat(objects[f.parent], f.own), max(f.calls.in(counts), 1))
			items = mulSat(objects[f.parent], f.items.in(counts))
		}
		objects[i] = items
		cost := addSat(own, mulSat(items, f.points))
		if points = addSat(points, cost); i > 0 && cost > most {
			largest, most = int32(i), cost
		}
	}
	if points > p.limit {
		return points, refuse(RuleCost, "the operation costs %d points; at most %d are accepted. %s costs most of all, %d points: request fewer items at once",
			points, p.limit, p.path(largest), most)
	}
	return points, nil
}

// allMet reports whether all conditions are met. A condition is also met if its variable is not a boolean.
func allMet(when []condition, variables map[string]any) bool {
	for _, c := range when {
		if is, ok := variables[c.variable].(bool); ok && is != c.include {
			return false
		}
	}
	return true
}

// path returns the path of a field in the response. It returns only the end of a long path.
func (p *Plan) path(at int32) string {
	const enough = 60
	path := p.fields[at].key
	for at = p.fields[at].parent; at > 0; at = p.fields[at].parent {
		if len(path) > enough {
			return "…" + path[len(path)-enough:]
		}
		path = p.fields[at].key + "." + path
	}
	return path
}
