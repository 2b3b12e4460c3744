// Package doorkeeper decides which items may displace others from a full cache: those that are wanted for the second
// time. A client that sends every item once displaces nothing.
package doorkeeper

// generation is the greatest number of hashes in young and in old. A hash takes about 20 bytes.
const generation = 1 << 15

// Doorkeeper remembers at least the last 32,768 hashes. The zero value remembers none. It is not safe for concurrent use.
type Doorkeeper struct{ young, old map[uint64]struct{} }

// Again remembers a hash and reports whether the hash was remembered before.
func (d *Doorkeeper) Again(hash uint64) bool {
	if _, ok := d.young[hash]; ok {
		return true
	}
	_, ok := d.old[hash]
	if d.young == nil || len(d.young) == generation {
		d.young, d.old = make(map[uint64]struct{}), d.young
	}
	d.young[hash] = struct{}{}
	return ok
}
