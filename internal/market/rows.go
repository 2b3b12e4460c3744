package market

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

// PositionKey identifies a position of a wallet. A position has the same key on every page, over REST and over the stream.
type PositionKey struct {
	MarketID, Outcome string
	// Ordinal numbers the wallet's positions in the same market and outcome, from 0; see NumberPositions.
	Ordinal int
}

// String returns a text that is different for each key.
func (k PositionKey) String() string {
	if k.Ordinal == 0 {
		return k.MarketID + "\n" + k.Outcome
	}
	return k.MarketID + "\n\n" + strconv.Itoa(k.Ordinal) + "\n" + k.Outcome
}

// Key returns the key of the position within its wallet.
func (p *Position) Key() PositionKey { return PositionKey{p.MarketID, p.Outcome, p.Ordinal} }

// NumberPositions sets the ordinals of all positions of a wallet, which must be in the venue's order. It numbers positions of size
// 0 last, so that the other ordinals stay the same in lists that omit positions of size 0.
func NumberPositions(rows []Position) {
	next := make(map[PositionKey]int, len(rows))
	for _, empty := range []bool{false, true} {
		for i := range rows {
			if p := &rows[i]; p.Size.IsZero() == empty {
				key := PositionKey{MarketID: p.MarketID, Outcome: p.Outcome}
				p.Ordinal = next[key]
				next[key]++
			}
		}
	}
}

// Key returns the venue's id of the trade, or a digest of the trade's fields if it has no id. If the ordinal is not 0, the key ends
// with the ordinal. A trade has the same key on every page, over REST and over the stream.
func (t *Trade) Key() string {
	if t.TradeID != "" {
		return withOrdinal(t.TradeID, t.Ordinal)
	}
	return keyOf(t.content(), t.Ordinal)
}

// content returns a digest of the trade's fields. Numbers with the same value, such as 0.65 and 0.650, give the same digest.
func (t *Trade) content() [16]byte {
	return digest(t.MarketID, t.TokenID, t.Outcome, cmp.Or(string(t.Side), t.SideRaw), t.Price.Reduce().String(), t.Size.Reduce().String(),
		instantText(t.Timestamp), strings.ToLower(t.TransactionHash))
}

// Key returns the venue's id of the record. If the record has no id, Key returns a digest of the record's fields. If the ordinal is
// not 0, the key ends with the ordinal.
func (h *HistoryRecord) Key() string {
	if h.ID != "" {
		return withOrdinal(h.ID, h.Ordinal)
	}
	return keyOf(h.content(), h.Ordinal)
}

func (h *HistoryRecord) content() [16]byte {
	number := func(d *Decimal) string {
		if d == nil {
			return ""
		}
		return d.Reduce().String()
	}
	return digest(h.KindRaw, instantText(h.Timestamp), number(h.Amount), h.MarketID, h.TokenID, h.Outcome, string(h.Side), number(h.Price),
		number(h.Size), strings.ToLower(h.TransactionHash))
}

func instantText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func keyOf(content [16]byte, ordinal int) string {
	return withOrdinal(hex.EncodeToString(content[:]), ordinal)
}

// withOrdinal appends an ordinal to a key. It appends nothing if the ordinal is 0.
func withOrdinal(key string, ordinal int) string {
	if ordinal == 0 {
		return key
	}
	return key + "-" + strconv.Itoa(ordinal)
}

func digest(parts ...string) [16]byte {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00") + "\x00"))
	return [16]byte(sum[:16])
}

// Numbering numbers the rows of a list that would have the same key, so that each row has its own key. Equal rows without an id are
// different rows. But a row that has the id and the fields of an earlier row is the same row, which the venue has sent twice, and is
// left out. Lists are sorted by time, and rows with the same key have the same timestamp. Between two pages, Numbering therefore
// stores only counts of the rows with the last timestamp of the page. The zero value is for the first page. A Numbering is not safe
// for concurrent use.
type Numbering struct {
	// at is the timestamp of the last row of the previous page. counts contains the counts of the rows with this timestamp.
	at     time.Time
	counts []hashCount
}

// hashCount contains a hash of a row, and the number of rows with this hash that were numbered so far. A row without an id has a
// hash of its fields. A row with an id has a hash of its key, and another one of its key and its fields.
type hashCount struct {
	hash  uint32
	count uint32
}

const maxHashes = 100

// NumberTrades sets the ordinals of the trades on the next page, and returns the trades without repetitions, in the memory of rows.
// The page must be in the venue's order.
func (t *Numbering) NumberTrades(rows []Trade) []Trade {
	p := t.newTally()
	kept := rows[:0]
	for _, r := range rows {
		content := r.content()
		if r.TradeID == "" {
			r.Ordinal = p.next(r.Timestamp, content)
		} else if p.isRepeated(r.Timestamp, r.TradeID, &r.Ordinal, content) {
			continue
		}
		kept = append(kept, r)
	}
	t.close(p)
	return kept
}

// NumberRecords does for records what NumberTrades does for trades.
func (t *Numbering) NumberRecords(rows []HistoryRecord) []HistoryRecord {
	p := t.newTally()
	kept := rows[:0]
	for _, r := range rows {
		content := r.content()
		if r.ID == "" {
			r.Ordinal = p.next(r.Timestamp, content)
		} else if p.isRepeated(r.Timestamp, r.ID, &r.Ordinal, content) {
			continue
		}
		kept = append(kept, r)
	}
	t.close(p)
	return kept
}

// pageTally counts rows by their hashes while a page is numbered. It includes the rows that the Numbering has stored.
type pageTally struct {
	counts map[uint32]uint32
	rows   []talliedRow
}

type talliedRow struct {
	at   time.Time
	hash uint32
}

func (t *Numbering) newTally() *pageTally {
	p := &pageTally{counts: make(map[uint32]uint32)}
	for _, a := range t.counts {
		p.counts[a.hash] = a.count
		p.rows = append(p.rows, talliedRow{t.at, a.hash})
	}
	return p
}

// next counts a row and returns its ordinal.
func (p *pageTally) next(at time.Time, content [16]byte) int {
	hash := binary.BigEndian.Uint32(content[:])
	n := p.counts[hash]
	p.counts[hash]++
	p.rows = append(p.rows, talliedRow{at, hash})
	return int(n)
}

// isRepeated counts a row with an id. If an earlier row has the same id and ordinal but other fields, isRepeated raises the ordinal
// to the next free one. It reports whether the row repeats an earlier row.
func (p *pageTally) isRepeated(at time.Time, id string, ordinal *int, content [16]byte) bool {
	for ; ; *ordinal++ {
		key := withOrdinal(id, *ordinal)
		isTaken := p.next(at, digest(key)) > 0
		isEqual := p.next(at, digest(key, string(content[:]))) > 0
		if !isTaken || isEqual { // both hashes of another row would have to collide
			return isTaken
		}
	}
}

// close stores the counts of the rows with the last timestamp, for the next page. It begins at the last row and stores at most
// maxHashes hashes.
func (t *Numbering) close(p *pageTally) {
	*t = Numbering{}
	seen := make(map[uint32]bool)
	for i := len(p.rows) - 1; i >= 0 && len(t.counts) < maxHashes; i-- {
		row := p.rows[i]
		if len(t.counts) == 0 {
			t.at = row.at
		}
		if row.at.Equal(t.at) && !seen[row.hash] {
			seen[row.hash] = true
			t.counts = append(t.counts, hashCount{row.hash, p.counts[row.hash]})
		}
	}
}

// MarshalText encodes the numbering in letters, digits, - and _.
func (t Numbering) MarshalText() ([]byte, error) {
	b := binary.AppendVarint(nil, t.at.UnixNano())
	for _, a := range t.counts {
		b = binary.BigEndian.AppendUint32(b, a.hash)
		b = binary.AppendUvarint(b, uint64(a.count))
	}
	return base64.RawURLEncoding.AppendEncode(nil, b), nil
}

// IsZero reports whether there is nothing to encode.
func (t Numbering) IsZero() bool { return len(t.counts) == 0 }

// UnmarshalText decodes the result of MarshalText.
func (t *Numbering) UnmarshalText(text []byte) error {
	bad := errors.New("market: not a numbering of rows")
	b, err := base64.RawURLEncoding.AppendDecode(nil, text)
	at, n := binary.Varint(b)
	if err != nil || n <= 0 {
		return bad
	}
	out := Numbering{at: time.Unix(0, at).UTC()}
	for b = b[n:]; len(b) > 0; {
		if len(b) < 5 || len(out.counts) == maxHashes {
			return bad
		}
		count, n := binary.Uvarint(b[4:])
		if n <= 0 || count == 0 || count > 1<<20 {
			return bad
		}
		out.counts = append(out.counts, hashCount{binary.BigEndian.Uint32(b), uint32(count)})
		b = b[4+n:]
	}
	*t = out
	return nil
}
