package guard

// Plan tells what an operation costs, for any variables. It is immutable and safe for concurrent use.
type Plan struct {
	limit int64
	// amounts are the numbers that variables decide on.
	amounts []amount
	// steps are the fields that give objects or are read; parents stand before what they hold, and the first is the operation.
	steps []step
	reads []upstreamRead
	// groups are the waves of the groups in which batched reads are added up.
	groups []int32
	waves  []wave
}

// step is a field of an operation.
type step struct {
	parent int32
	// items is how many objects the field gives for each object of the parent.
	items number
	// values is how many values are shown of each object, the object itself included.
	values int64
	when   []condition
	// key is the response key.
	key string
}

// upstreamRead is what is read for a step.
type upstreamRead struct {
	step int32
	// times is the number of reads for each object of the step, or of its parent.
	times    number
	ofParent bool
	when     []condition
	// group is where batched reads are added up; none for what takes a call each.
	group int32
}

const none = -1

// wave is a moment at which ids become known, so that what is read by them leaves together: at the start what the operation
// itself names, and later what a read has brought. What came by calls of its own, one for each object of the parent of step,
// comes in as many waves.
type wave struct{ parent, step int32 }

// number is one of the plan's amounts, or a constant.
type number struct {
	amount   int32
	constant int64
}

func constant(n int64) number { return number{none, n} }

// amount is a number that a variable decides on.
type amount struct {
	variable string
	of       aspect
	// otherwise is the number when the variable is null or not given.
	otherwise, limit int64
}

// condition is a @skip or an @include by a variable.
type condition struct {
	variable string
	include  bool
}

// path returns where a step's field stands in the response: the end of the path, where it is long.
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
