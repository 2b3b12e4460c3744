package wire

// Kind is the type of a JSON value.
type Kind byte

// The kinds. The kind of the zero Value is Missing. Each other constant is a character with which a JSON value of its kind can
// begin.
const (
	Missing Kind = 0
	Null    Kind = 'n'
	False   Kind = 'f'
	True    Kind = 't'
	Number  Kind = '0'
	String  Kind = '"'
	List    Kind = '['
	Object  Kind = '{'
)

// document is the text of a JSON value and the positions of all values in the text. The positions are in the order in which the
// values begin.
type document struct {
	text  []byte
	nodes []node
	// hasEscapes reports that the text contains a backslash. invalidUTF8 reports that the text contains bytes that are not UTF-8.
	hasEscapes, invalidUTF8 bool
}

// node is the kind and the position of a value in the text. If the value is a member of an object, the node also has the position
// of the member's name. The positions of strings and names include the quotes.
type node struct {
	kind Kind
	// escaped reports that the name differs from its decoded form, so it must be decoded before a comparison.
	escaped       bool
	name, nameEnd uint32
	start, end    uint32
	// after is the index of the first node whose value begins after the end of this value. If there is no such node, after is the
	// number of nodes.
	after uint32
}

// name returns the name of the member whose node has the given index. The result may share memory with the document.
func (d *document) name(at uint32) []byte {
	n := &d.nodes[at]
	quoted := d.text[n.name:n.nameEnd]
	if n.escaped {
		return unquote(quoted)
	}
	return quoted[1 : len(quoted)-1]
}

// Value is one value of a document. Its methods decode the value when they are called. A Value keeps the whole document in memory.
// The strings that its methods return do not keep the document in memory. The zero Value is a missing value. A Value is safe for
// concurrent use.
type Value struct {
	in *document
	at uint32
}

// Kind returns the type of the value.
func (v Value) Kind() Kind {
	if v.in == nil {
		return Missing
	}
	return v.in.nodes[v.at].kind
}

// IsNull reports whether the value is null or missing.
func (v Value) IsNull() bool {
	k := v.Kind()
	return k == Null || k == Missing
}

// JSON returns the text of the value, or nil if the value is missing. The result shares memory with the document and must not be
// changed.
func (v Value) JSON() []byte {
	if v.in == nil {
		return nil
	}
	n := &v.in.nodes[v.at]
	return v.in.text[n.start:n.end:n.end]
}

// bytes returns the decoded string or the literal of a number, or nil. It may share memory with the document.
func (v Value) bytes() []byte {
	switch v.Kind() {
	case String:
		quoted := v.JSON()
		if v.in.escaped(quoted) {
			return unquote(quoted)
		}
		return quoted[1 : len(quoted)-1]
	case Number:
		return v.JSON()
	}
	return nil
}

// Text returns the decoded string or the literal of a number. For any other value, Text returns "".
func (v Value) Text() string { return string(v.bytes()) }

// Interned returns Text, interned; see market.Intern.
func (v Value) Interned() string { return textOf(v.bytes(), true) }

// Is reports whether the value is a string that equals text.
func (v Value) Is(text string) bool { return v.Kind() == String && string(v.bytes()) == text }

// Elements returns the elements of a list. For any other value, Elements returns nil.
func (v Value) Elements() []Value {
	if v.Kind() != List {
		return nil
	}
	n := 0
	for range v.children {
		n++
	}
	elements := make([]Value, 0, n)
	for e := range v.children {
		elements = append(elements, e)
	}
	return elements
}

// Member returns the member of the object v that has the given name. If several members have the name, Member returns the last of
// them. If there is no such member, or v is not an object, Member returns the zero Value.
func (v Value) Member(name string) (member Value) {
	if v.Kind() != Object {
		return Value{}
	}
	for at, end := v.at+1, v.in.nodes[v.at].after; at < end; at = v.in.nodes[at].after {
		if string(v.in.name(at)) == name {
			member = Value{v.in, at}
		}
	}
	return member
}

// Members returns the members of an object by name. If several members have the same name, the map contains the last of them. For
// any other value, Members returns nil.
func (v Value) Members() map[string]Value {
	if v.Kind() != Object {
		return nil
	}
	members := make(map[string]Value)
	for m := range v.children {
		members[string(m.in.name(m.at))] = m
	}
	return members
}

// Parent returns the object or list that contains the value. For the outermost value, Parent returns the zero Value. The time that
// Parent takes is proportional to the number of values between the start of the parent and v.
func (v Value) Parent() Value {
	for at := v.at; at > 0; {
		if at--; v.in.nodes[at].after > v.at {
			return Value{v.in, at}
		}
	}
	return Value{}
}

func (v Value) children(yield func(Value) bool) {
	for at, end := v.at+1, v.in.nodes[v.at].after; at < end; at = v.in.nodes[at].after {
		if !yield(Value{v.in, at}) {
			return
		}
	}
}
