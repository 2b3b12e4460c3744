package cache

import (
	"reflect"
	"time"
	"unsafe"

	"oddsgraph/internal/market"
)

// DefaultMemory is the default of Config.Memory, in bytes.
const DefaultMemory = 64 << 20

var (
	timeType    = reflect.TypeFor[time.Time]()
	decimalType = reflect.TypeFor[market.Decimal]()
	sideType    = reflect.TypeFor[market.Side]()
)

// errorBytes is the size of an error that reports one unreadable row, in bytes.
const errorBytes = 384

// weigh estimates the size of a value in bytes. It visits all memory that the value refers to, except the levels of a book. Memory
// that several values share counts for each of them. A market.Decimal counts as if its digits fitted into it, which is so for up to 38
// digits.
func weigh[T any](value *T) int { return walk(reflect.ValueOf(value)) }

// walk returns the size of the memory to which v refers.
func walk(v reflect.Value) (bytes int) {
	switch v.Kind() {
	case reflect.String:
		return allocated(v.Len())
	case reflect.Pointer:
		if !v.IsNil() {
			bytes = allocated(int(v.Type().Elem().Size())) + walk(v.Elem())
		}
	case reflect.Slice:
		bytes = allocated(v.Cap() * int(v.Type().Elem().Size()))
		for i := range v.Len() {
			bytes += walk(v.Index(i))
		}
	case reflect.Struct:
		switch v.Type() {
		case timeType, decimalType, sideType:
			return 0
		}
		for i := range v.NumField() {
			bytes += walk(v.Field(i))
		}
	case reflect.Interface:
		return errorBytes
	}
	return bytes
}

// allocated estimates the memory of an allocation. Go rounds the size of an allocation up, by an eighth on average for small ones.
func allocated(bytes int) int {
	if bytes == 0 {
		return 0
	}
	return bytes + bytes/8 + 8
}

// overhead returns the size in bytes of what a list stores for an item: its key, the element and the hash-table slot of the
// simplelru.LRU, and inline bytes in the element.
func overhead[K comparable](key *K, inline int) int {
	size := int(unsafe.Sizeof(*key))
	const element = 64 // three pointers, a time and a bucket
	bytes := walk(reflect.ValueOf(key).Elem()) + allocated(element+size+inline)
	if size > 128 { // Go's maps store such keys outside of their tables
		bytes, size = bytes+allocated(size), 8
	}
	return bytes + 2*(size+9) // tables are half full
}
