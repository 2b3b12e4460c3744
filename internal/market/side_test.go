package market

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"
)

// set returns a copy of a list of levels with the change that Side.Set makes to a side.
func set(list []Level, which OrderSide, l Level) []Level {
	list = slices.DeleteFunc(slices.Clone(list), func(x Level) bool { return x.Price.Cmp(l.Price) == 0 })
	if l.Size.Sign() > 0 {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Level) int {
		if which == SideBuy {
			a, b = b, a
		}
		return a.Price.Cmp(b.Price)
	})
	return list
}

func collect(s Side) (list []Level) {
	for l := range s.All() {
		list = append(list, *l)
	}
	return list
}

// wholeChunks reports whether the chunks of a side together have s.levels.count levels, and no chunk is empty or too long. For an
// empty side, it reports whether the side has no storage.
func wholeChunks(s Side) bool {
	if s.count == 0 {
		return s.levels == nil
	}
	count := 0
	for _, c := range s.levels.chunks {
		if c.count == 0 || c.count > chunkLevels {
			return false
		}
		count += c.count
	}
	return count == s.levels.count
}

// TestSideIsASlice checks that random changes have the same effect on a Side as on a slice. It compares all states only after the
// last change, because no change may affect an earlier state.
func TestSideIsASlice(t *testing.T) {
	type state struct {
		side Side
		want []Level
	}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		which, prices := []OrderSide{SideBuy, SideSell}[seed%2], 1+r.Int64N(120)
		var list []Level
		for range r.IntN(80) {
			list = set(list, which, Level{NewDecimal(r.Int64N(prices), -3), NewDecimal(1+r.Int64N(9), 0)})
		}
		states := []state{{NewSide(slices.Clone(list)), list}}
		for range 200 {
			from := states[len(states)-1]
			if r.IntN(20) == 0 {
				from = states[r.IntN(len(states))]
			}
			if r.IntN(20) == 0 {
				depth := r.IntN(len(from.want) + 2)
				from = state{from.side.Cut(depth), from.want[:min(depth, len(from.want))]}
			}
			l := Level{NewDecimal(r.Int64N(prices), -3), NewDecimal(max(0, r.Int64N(9)-3*int64(seed%3)), 0)}
			states = append(states, state{from.side.Set(which, l), set(from.want, which, l)})
		}
		for i, s := range states {
			if got := collect(s.side); !slices.Equal(got, s.want) || s.side.Len() != len(s.want) || !slices.Equal(s.side.Levels(), s.want) {
				t.Fatalf("seed %d: state %d has levels %v, want %v", seed, i, s.side, s.want)
			}
			if i > 0 && s.side.levels != nil && s.side.levels.chunks != nil && !wholeChunks(s.side) {
				t.Fatalf("seed %d: state %d has an empty or too long chunk, or a wrong number of levels", seed, i)
			}
			if best := s.side.Best(); (best == nil) != (len(s.want) == 0) || best != nil && *best != s.want[0] {
				t.Fatalf("seed %d: the best level of state %d is %v, want %v", seed, i, best, s.want)
			}
			other, depth := states[r.IntN(len(states))], r.IntN(90)
			cut, rest := s.side.Cut(depth), other.want[:min(depth, len(other.want))]
			if equal := slices.Equal(collect(cut), rest); cut.Equal(other.side.Cut(depth)) != equal {
				t.Fatalf("seed %d: Equal of %v and %v returned %v, want %v", seed, cut, rest, !equal, equal)
			}
			want := BookSideDelta(NewSide(collect(cut)), NewSide(slices.Clone(rest)), which)
			if got := BookSideDelta(cut, other.side.Cut(depth), which); !slices.Equal(got, want) {
				t.Fatalf("seed %d: delta from %v to %v: got %v, want %v", seed, cut, rest, got, want)
			}
		}
	}
}

func deepSide(n int) (s Side) {
	var list []Level
	for i := range n {
		list = append(list, Level{NewDecimal(int64(n-i), -3), NewDecimal(int64(i+1), 0)})
	}
	return NewSide(list)
}

// TestSideCopiesLittle checks that a change of one of 200 levels allocates at most 1,000 bytes.
func TestSideCopiesLittle(t *testing.T) {
	s := deepSide(200).Set(SideBuy, Level{NewDecimal(1, -3), NewDecimal(7, 0)})
	n := int64(0)
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n++
			s = s.Set(SideBuy, Level{NewDecimal(1+n%200, -3), NewDecimal(1+n, 0)})
		}
	})
	if got := result.AllocedBytesPerOp(); got > 1000 {
		t.Errorf("a change of one of %d levels allocates %d bytes, want at most 1000; all levels have %d bytes", s.Len(), got, s.Len()*int(unsafe.Sizeof(Level{})))
	}
}

func TestSideBytes(t *testing.T) {
	if level, head := int(unsafe.Sizeof(Level{})), int(unsafe.Sizeof(storage{})); level != 64 || head > 96 {
		t.Errorf("a Level has %d bytes and a storage has %d bytes, want 64 and at most 96", level, head)
	}
	flat := deepSide(70)
	if got := flat.Bytes(); got < 70*64 || got > 70*64+200 || (Side{}).Bytes() != 0 {
		t.Errorf("Bytes of 70 levels returned %d, want %d to %d; or Bytes of an empty side is not 0", got, 70*64, 70*64+200)
	}
	if got := flat.Set(SideBuy, Level{NewDecimal(99, -3), NewDecimal(1, 0)}).Bytes(); got < 2*71*64 {
		t.Errorf("Bytes of 71 levels in chunks and a slice returned %d, want at least %d", got, 2*71*64)
	}
}

// TestSideLevelsAreShared checks that the slices of concurrent Levels calls and of cut sides share one array. The slices must have
// no spare capacity, because an append must copy the levels.
func TestSideLevelsAreShared(t *testing.T) {
	s := deepSide(50).Set(SideBuy, Level{NewDecimal(25, -3), NewDecimal(999, 0)})
	all := make([][]Level, 8)
	var g sync.WaitGroup
	for i := range all {
		g.Go(func() { all[i] = s.Levels() })
	}
	g.Wait()
	for _, l := range append(all, s.Cut(20).Levels(), s.Cut(50).Levels()) {
		if &l[0] != &all[0][0] || cap(l) != len(l) {
			t.Fatalf("a slice of %d levels has capacity %d and is a copy: %v; want no spare capacity and no copy", len(l), cap(l), &l[0] != &all[0][0])
		}
	}
	if l := (Side{}).Levels(); l == nil || len(l) != 0 {
		t.Errorf("Levels of an empty side returned %v, want an empty slice that is not nil", l)
	}
}

func TestSideText(t *testing.T) {
	for _, s := range []Side{{}, deepSide(3), deepSide(20).Set(SideBuy, Level{NewDecimal(3, -3), NewDecimal(5, 0)})} {
		text, err := json.Marshal(s)
		var again Side
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || !again.Equal(s) || fmt.Sprint(again) != fmt.Sprint(s) {
			t.Errorf("side %v: encoded as %s and decoded as %v, error %v", s, text, again, err)
		}
	}
	if err := json.Unmarshal([]byte(`[{"Price":"x"}]`), new(Side)); err == nil {
		t.Error("UnmarshalJSON accepted a level with an invalid price")
	}
}
