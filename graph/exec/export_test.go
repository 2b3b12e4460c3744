package exec

// Knows reports whether the field of an object type can be compiled.
func (c *Compiler) Knows(object, field string) bool {
	_, ok := c.types[object].Fields[field]
	return ok
}
