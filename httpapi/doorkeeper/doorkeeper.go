// Package doorkeeper decides what may displace the content of a full cache: only what is wanted for the second time. So a client that
// sends each thing once fills the free room of a cache and displaces nothing.
package doorkeeper

// remembered is the number of hashes in each of two generations, at some 20 bytes each.
const remembered = 1 << 15

// Doorkeeper remembers hashes of what was wanted lately: the last 32,768 at least. The zero value remembers none. It is not safe for
// concurrent use.
type Doorkeeper struct{ young, old map[uint64]struct{} }

// Again remembers a hash, and reports whether it was remembered before.
func (d *Doorkeeper) Again(hash uint64) bool {
	if _, ok := d.young[hash]; ok {
		return true
	}
	_, ok := d.old[hash]
	if d.young == nil || len(d.young) == remembered {
		d.young, d.old = make(map[uint64]struct{}), d.young
	}
	d.young[hash] = struct{}{}
	return ok
}
