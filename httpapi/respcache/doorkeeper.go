package respcache

// generation is the maximum number of hashes in each map of a Doorkeeper. A hash takes about 20 bytes.
const generation = 1 << 15

// Doorkeeper remembers hashes of requested items. A full cache stores a new item, and evicts other items, only if the new item was
// requested before. So a client that requests each item only once evicts nothing. It remembers at least the last 32,768 different
// hashes. The zero value is empty. Doorkeeper is not safe for concurrent use.
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
