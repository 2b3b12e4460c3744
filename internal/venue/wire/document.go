package wire

// Kind is what a value is.
type Kind byte

// The kinds of values, by the characters that they begin with. Missing is that of the zero Value, which stands for what is
// not there.
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

// document is the text of a JSON value and where in it the values are, each before those in it.
type document struct {
	text  []byte
	nodes []node
	// escapes tells that there are some in the text, and spoilt that it is not all UTF-8.
	escapes, spoilt bool
}

// node says where a value is, and its name where it is a member of an object; both with their quotes.
type node struct {
	kind Kind
	// odd tells that the bytes of the name don't say what they are.
	odd           bool
	name, nameEnd uint32
	start, end    uint32
	// after is the place of the first node that is not in the value.
	after uint32
}

// name returns the name of a member, perhaps in the memory of the text.
func (d *document) name(at uint32) []byte {
	n := &d.nodes[at]
	quoted := d.text[n.name:n.nameEnd]
	if n.odd {
		return unquoted(quoted)
	}
	return quoted[1 : len(quoted)-1]
}

// Value is one value in a document: a place, which costs nothing until it is asked what is there. It keeps the document in
// memory, while the texts that its methods return do not. The zero Value stands for what is not there. A Value may be used
// concurrently.
type Value struct {
	in *document
	at uint32
}

// Kind returns what the value is.
func (v Value) Kind() Kind {
	if v.in == nil {
		return Missing
	}
	return v.in.nodes[v.at].kind
}

// IsNull reports whether the value is null or not there.
func (v Value) IsNull() bool {
	k := v.Kind()
	return k == Null || k == Missing
}

// JSON returns the text of the value as it stands in the document, which must not be changed.
func (v Value) JSON() []byte {
	if v.in == nil {
		return nil
	}
	n := &v.in.nodes[v.at]
	return v.in.text[n.start:n.end:n.end]
}

// bytes returns what a string says or the literal of a number, perhaps in the memory of the document.
func (v Value) bytes() []byte {
	switch v.Kind() {
	case String:
		quoted := v.JSON()
		if v.in.odd(quoted) {
			return unquoted(quoted)
		}
		return quoted[1 : len(quoted)-1]
	case Number:
		return v.JSON()
	}
	return nil
}

// Text returns what a string says, or the literal of a number; nothing for any other value.
func (v Value) Text() string { return string(v.bytes()) }

// Shared returns the text as Intern does.
func (v Value) Shared() string { return textOf(v.bytes(), true) }

// Is reports whether the value is a string that says text.
func (v Value) Is(text string) bool { return v.Kind() == String && string(v.bytes()) == text }

// Elements returns what is in a list, in its order.
func (v Value) Elements() []Value {
	if v.Kind() != List {
		return nil
	}
	n := 0
	for range v.inside {
		n++
	}
	elements := make([]Value, 0, n)
	for e := range v.inside {
		elements = append(elements, e)
	}
	return elements
}

// Member returns the member of an object that has this name, the last one if several have it. It returns the zero Value if
// there is none or v is not an object.
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

// Members returns the members of an object by their names.
func (v Value) Members() map[string]Value {
	if v.Kind() != Object {
		return nil
	}
	members := make(map[string]Value)
	for m := range v.inside {
		members[string(m.in.name(m.at))] = m
	}
	return members
}

// Parent returns the object or list that the value is in, or the zero Value for the outermost value. It looks at every value
// between the two.
func (v Value) Parent() Value {
	for at := v.at; at > 0; {
		if at--; v.in.nodes[at].after > v.at {
			return Value{v.in, at}
		}
	}
	return Value{}
}

// inside yields what is in a list or object, in its order.
func (v Value) inside(yield func(Value) bool) {
	for at, end := v.at+1, v.in.nodes[v.at].after; at < end; at = v.in.nodes[at].after {
		if !yield(Value{v.in, at}) {
			return
		}
	}
}
