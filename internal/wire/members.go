package wire

import "math/bits"

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

// Objects with so many members have a table of them. With fewer it would not pay; more, which only objects from id to value
// have, would let a venue choose names that all have one mark and so make reading slow.
const (
	minTable = 8
	maxTable = 64
)

// index makes the table of an object whose members are the last nodes. Its slots say how far from the object a member is, 0
// if they are free; a member has the slot that its mark says, or the next one that was free. Of two members with one name
// the last is in the table.
func (d *document) index(object uint32, members int) (table uint32, log uint8) {
	if members < minTable || members > maxTable || len(d.nodes)-int(object) > 1<<16 {
		return 0, 0
	}
	table, log = uint32(len(d.tables)), uint8(1+bits.Len(uint(members))) // at least half of the slots stay free
	d.tables = append(d.tables, make([]uint16, 1<<log)...)
	for at := object + 1; at < uint32(len(d.nodes)); at = d.nodes[at].after {
		*d.slot(object, d.tables[table:], name{string(d.name(at)), d.nodes[at].mark}) = uint16(at - object)
	}
	return table, log
}

// slot returns the slot of a name in an object's table, or the free one where it would be.
func (d *document) slot(object uint32, table []uint16, n name) *uint16 {
	for i := int(n.mark); ; i++ {
		slot := &table[i&(len(table)-1)]
		if at := object + uint32(*slot); at == object || d.nodes[at].mark == n.mark && string(d.name(at)) == n.text {
			return slot
		}
	}
}

// member returns the member of an object that has a name.
func (v Value) member(n name) (member Value) {
	if v.Kind() != Object {
		return Value{}
	}
	if object := &v.in.nodes[v.at]; object.bits > 0 {
		if offset := *v.in.slot(v.at, v.in.tables[object.table:][:1<<object.bits], n); offset > 0 {
			member = Value{v.in, v.at + uint32(offset)}
		}
		return member
	}
	for m := range v.inside {
		if v.in.nodes[m.at].mark == n.mark && string(v.in.name(m.at)) == n.text {
			member = m
		}
	}
	return member
}
