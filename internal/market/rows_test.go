package market

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// tokenOf returns a numbering as it is in a page token, which has none if it is zero.
func tokenOf(n Numbering) string {
	if n.IsZero() {
		return ""
	}
	b, _ := n.MarshalText()
	return string(b)
}

func parseNumbering(text string) (n Numbering, err error) {
	if text != "" {
		err = n.UnmarshalText([]byte(text))
	}
	return n, err
}

// TestKeysDoNotDependOnPages checks that rows with equal contents have different keys, and that the keys do not depend on the page
// size.
func TestKeysDoNotDependOnPages(t *testing.T) {
	at := time.Unix(1_764_000_000, 0)
	var trades []Trade
	var records []HistoryRecord
	for i := range 60 {
		price, when := NewDecimal(int64(50+i%3), -2), at.Add(-time.Duration(i/20)*time.Second)
		trades = append(trades, Trade{MarketID: "M", Side: SideBuy, Price: price, Size: NewDecimal(10, 0), Timestamp: when, TransactionHash: "0xabc"})
		records = append(records, HistoryRecord{MarketID: "M", Kind: HistoryTrade, KindRaw: "TRADE", Side: SideBuy, Price: &price, Timestamp: when, TransactionHash: "0xabc"})
	}
	var whole []string
	for size := len(trades); size > 0; size-- {
		var carry, carryRecords string
		var keys []string
		for from := 0; from < len(trades); from += size {
			n, err := parseNumbering(carry)
			m, err2 := parseNumbering(carryRecords)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			page := append([]Trade(nil), trades[from:min(from+size, len(trades))]...)
			n.NumberTrades(page)
			other := append([]HistoryRecord(nil), records[from:min(from+size, len(records))]...)
			m.NumberRecords(other)
			for i := range page {
				keys = append(keys, page[i].Key()+" "+other[i].Key())
			}
			carry, carryRecords = tokenOf(n), tokenOf(m)
		}
		if whole == nil {
			whole = keys
			seen := map[string]bool{}
			for _, key := range keys {
				for part := range strings.SplitSeq(key, " ") {
					if seen[part] {
						t.Fatalf("two rows have the key %s", part)
					}
					seen[part] = true
				}
			}
		}
		for i := range keys {
			if keys[i] != whole[i] {
				t.Fatalf("with %d rows on a page, row %d has the keys %s, want %s", size, i, keys[i], whole[i])
			}
		}
	}
}

// TestKeysOfRows checks that each listed field affects the key. The notation of numbers, times and hashes does not affect the key.
// If the venue sends an id of the row, this id is the key.
func TestKeysOfRows(t *testing.T) {
	number := func(s string) *Decimal { return new(MustDecimal(s)) }
	base := HistoryRecord{Kind: HistoryTrade, KindRaw: "TRADE", MarketID: "M", TokenID: "T", Outcome: "YES", Side: SideBuy, Amount: number("6.50"), Price: number("0.650"),
		Size: number("10.0"), Timestamp: time.Unix(5, 0), TransactionHash: "0xABC"}
	same := base
	same.Amount, same.Price, same.Size, same.Timestamp, same.TransactionHash = number("6.5"), number("0.65"), number("10"), time.Unix(5, 0).UTC(), "0xabc"
	if base.Key() != same.Key() {
		t.Error("two notations of one record have different keys")
	}
	trade := func(h *HistoryRecord) *Trade {
		return &Trade{MarketID: h.MarketID, TokenID: h.TokenID, Outcome: h.Outcome, Side: h.Side, SideRaw: "raw", Price: *h.Price, Size: *h.Size, Timestamp: h.Timestamp,
			TransactionHash: h.TransactionHash, Ordinal: h.Ordinal}
	}
	if trade(&base).Key() != trade(&same).Key() {
		t.Error("two notations of one trade have different keys")
	}
	for name, change := range map[string]func(*HistoryRecord){
		"market": func(h *HistoryRecord) { h.MarketID = "N" }, "token": func(h *HistoryRecord) { h.TokenID = "U" }, "outcome": func(h *HistoryRecord) { h.Outcome = "NO" },
		"side": func(h *HistoryRecord) { h.Side = SideSell }, "price": func(h *HistoryRecord) { h.Price = number("0.66") }, "size": func(h *HistoryRecord) { h.Size = number("11") },
		"time": func(h *HistoryRecord) { h.Timestamp = time.Unix(6, 0) }, "transaction": func(h *HistoryRecord) { h.TransactionHash = "0xdef" },
		"ordinal": func(h *HistoryRecord) { h.Ordinal = 1 }, "amount": func(h *HistoryRecord) { h.Amount = nil }, "kind": func(h *HistoryRecord) { h.KindRaw = "FEE" },
	} {
		other := base
		change(&other)
		if other.Key() == base.Key() {
			t.Errorf("records with a different %s have the same key", name)
		}
		if name != "amount" && name != "kind" && trade(&other).Key() == trade(&base).Key() {
			t.Errorf("trades with a different %s have the same key", name)
		}
	}
	if (&Trade{TradeID: "x", Ordinal: 0}).Key() != "x" || (&HistoryRecord{ID: "y"}).Key() != "y" || (&HistoryRecord{ID: "y", Ordinal: 1}).Key() != "y-1" {
		t.Error("the key of a row with an id is not the id")
	}
}

// TestRowsWithTheSameID checks rows to which the venue gives the same id. A row that repeats another row is left out, also on the next
// page. Rows with different fields have different keys, which do not depend on the page size.
func TestRowsWithTheSameID(t *testing.T) {
	trade := func(id, price string, second int64) Trade {
		return Trade{TradeID: id, MarketID: "M", Price: MustDecimal(price), Size: NewDecimal(1, 0), Timestamp: time.Unix(second, 0)}
	}
	trades := []Trade{trade("a", "0.5", 9), trade("a", "0.50", 9), trade("b", "0.5", 8), trade("b", "0.6", 8), trade("c", "0.7", 8), trade("b", "0.5", 8), trade("b", "0.6", 8),
		trade("b", "0.7", 8), trade("c", "0.7", 8), trade("d", "0.1", 7), trade("d", "0.1", 7)}
	const want = "[a b b-1 c b-2 d]"
	for size := len(trades); size > 0; size-- {
		var forTrades, forRecords Numbering
		var keys, recordKeys []string
		for from := 0; from < len(trades); from += size {
			page := slices.Clone(trades[from:min(from+size, len(trades))])
			records := make([]HistoryRecord, len(page))
			for i, x := range page {
				records[i] = HistoryRecord{ID: x.TradeID, MarketID: x.MarketID, Price: &x.Price, Timestamp: x.Timestamp}
			}
			for _, x := range forTrades.NumberTrades(page) {
				keys = append(keys, x.Key())
			}
			for _, h := range forRecords.NumberRecords(records) {
				recordKeys = append(recordKeys, h.Key())
			}
			for _, n := range []*Numbering{&forTrades, &forRecords} { // as in the token of the next page
				var err error
				if *n, err = parseNumbering(tokenOf(*n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if fmt.Sprint(keys) != want || fmt.Sprint(recordKeys) != want {
			t.Errorf("with %d rows on a page, the trades have the keys %v and the records %v, want %s", size, keys, recordKeys, want)
		}
	}
	// A driver has given the second of two trades another ordinal, and both are numbered again.
	pair := []Trade{trade("a", "0.4", 9), trade("a", "0.6", 9)}
	pair[1].Ordinal = 1
	for range 2 {
		if pair = new(Numbering).NumberTrades(pair); len(pair) != 2 || pair[0].Key() != "a" || pair[1].Key() != "a-1" {
			t.Errorf("two trades with the ordinals 0 and 1 become %+v", pair)
		}
	}
}

// TestUnmarshalTextRefuses checks that UnmarshalText rejects texts that MarshalText cannot return, and that a Numbering stores at most
// maxHashes hashes.
func TestUnmarshalTextRefuses(t *testing.T) {
	for _, text := range []string{"!", "A", "AAAA", "_____________________w", strings.Repeat("AAAAAQE", 300)} {
		if n, err := parseNumbering(text); err == nil {
			t.Errorf("UnmarshalText(%q) = %+v, want an error", text, n)
		}
	}
	var n Numbering
	// These are more than maxHashes different rows with the same timestamp.
	rows := make([]Trade, 150)
	for i := range rows {
		rows[i] = Trade{MarketID: fmt.Sprint(i), Timestamp: time.Unix(1, 0)}
	}
	n.NumberTrades(rows)
	if again, err := parseNumbering(tokenOf(n)); err != nil || len(again.counts) != maxHashes || tokenOf(again) != tokenOf(n) || len(tokenOf(n)) > 1000 {
		t.Errorf("got %d hashes in %d bytes, error %v; want %d hashes in at most 1000 bytes", len(again.counts), len(tokenOf(n)), err, maxHashes)
	}
}

// TestNumberPositions checks that the ordinals of positions with the same market and outcome follow the venue's order, with
// positions of size 0 last.
func TestNumberPositions(t *testing.T) {
	rows := []Position{{MarketID: "A", Outcome: "YES"}, {MarketID: "A", Outcome: "YES", Size: NewDecimal(1, 0)}, {MarketID: "B", Outcome: "YES", Size: NewDecimal(2, 0)},
		{MarketID: "A", Outcome: "NO", Size: NewDecimal(3, 0)}, {MarketID: "A", Outcome: "YES", Size: NewDecimal(4, 0)}}
	NumberPositions(rows)
	var got []int
	seen := map[string]bool{}
	for i := range rows {
		got = append(got, rows[i].Ordinal)
		seen[rows[i].Key().String()] = true
	}
	if fmt.Sprint(got) != "[2 0 0 0 1]" || len(seen) != len(rows) {
		t.Errorf("got ordinals %v and keys %v, want [2 0 0 0 1] and a key for each position", got, seen)
	}
}

// TestNumberingKeepsLastTimestamp checks that the encoded Numbering contains only the rows with the last timestamp of the page.
func TestNumberingKeepsLastTimestamp(t *testing.T) {
	trade := func(hash string, second int64) Trade {
		return Trade{MarketID: "M", Price: MustDecimal("0.5"), Size: MustDecimal("1"), Timestamp: time.Unix(second, 0), TransactionHash: hash}
	}
	var both, last Numbering
	both.NumberTrades([]Trade{trade("a", 2), trade("b", 1)})
	last.NumberTrades([]Trade{trade("b", 1)})
	if tokenOf(both) != tokenOf(last) {
		t.Errorf("the numbering of two rows is %s, want %s, as for the last row alone", tokenOf(both), tokenOf(last))
	}
}

// TestUnmarshalTextBounds checks that UnmarshalText accepts the largest valid numbering and rejects larger ones.
func TestUnmarshalTextBounds(t *testing.T) {
	text := func(rows int, count uint64) string {
		b := binary.AppendVarint(nil, 1)
		for i := range rows {
			b = binary.AppendUvarint(binary.BigEndian.AppendUint32(b, uint32(i)), count)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	greatest := text(maxHashes, 1<<20)
	if n, err := parseNumbering(greatest); err != nil || tokenOf(n) != greatest {
		t.Errorf("the largest valid numbering: got %q, error %v", tokenOf(n), err)
	}
	for _, bad := range []string{text(maxHashes+1, 1), text(1, 0), text(1, 1<<20+1)} {
		if n, err := parseNumbering(bad); err == nil || tokenOf(n) != "" {
			t.Errorf("UnmarshalText(%.20s) returned %q, want an error", bad, tokenOf(n))
		}
	}
}

// TestKeysOfNeighbours checks that the key changes if text moves from one field to the next.
func TestKeysOfNeighbours(t *testing.T) {
	a, b := Trade{MarketID: "ab", TokenID: "c"}, Trade{MarketID: "a", TokenID: "bc"}
	if a.Key() == b.Key() {
		t.Errorf("trades in different markets have the same key %s", a.Key())
	}
}
