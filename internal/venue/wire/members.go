package wire

// name is the name of a member that is looked for.
type name struct {
	text string
	mark uint8
}

func nameOf(text string) name { return name{text, markOf(text)} }

// markOf returns a number by which most of the names in one object can be told apart.
func markOf[T string | ~[]byte](name T) uint8 {
	n := len(name)
	if n == 0 {
		return 0
	}
	return uint8(n) + 7*name[0] + name[n/2] + 9*name[n-1]
}

// member returns the member of an object that has a name, the last of several.
func (v Value) member(n name) (member Value) {
	if v.Kind() != Object {
		return Value{}
	}
	nodes := v.in.nodes
	for at, end := v.at+1, nodes[v.at].after; at < end; at = nodes[at].after {
		if nodes[at].mark == n.mark && string(v.in.name(at)) == n.text {
			member = Value{v.in, at}
		}
	}
	return member
}
