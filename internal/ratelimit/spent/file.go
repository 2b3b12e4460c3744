package spent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"
)

const (
	// span is the time for which the venue counts a call against its limit.
	span = time.Minute
	// skew is the greatest accepted difference between the clocks of two successive processes.
	skew = 2 * time.Second
	// slots is the number of seconds in a file: a minute plus twice skew.
	slots = 64
)

// content is the content of a file.
type content struct {
	Magic [8]byte
	// Written is the time of the write, in milliseconds since 1970.
	Written int64
	// Whole is a time in milliseconds since 1970, and may be in the future. At this time and later, the file contains every call of
	// the last minute.
	Whole int64
	// Open is the number of running calls, plus the number of calls that may start before the next write; see the package comment.
	Open int64
	// Ended counts calls by the second in which they ended.
	Ended [slots]second
}

// second counts the calls that ended in one second. At is the second, in seconds since 1970.
type second struct{ At, Calls int64 }

var magic = [8]byte{'o', 'd', 'd', 's', 'c', 'a', 'l', '1'}

// These errors say why a file may lack calls. In their texts, "it" is the file.
var (
	errNew     = errors.New("it is new")
	errDamaged = errors.New("it is damaged, or it is not a record of calls")
	errFuture  = errors.New("it was written in the future")
	errOld     = errors.New("it was written more than a minute ago")
	errYoung   = errors.New("it was begun less than a minute ago")
)

func (c *content) encode() []byte {
	b, err := binary.Append(make([]byte, 0, binary.Size(c)+4), binary.LittleEndian, c)
	if err != nil {
		panic(err) // the type has a fixed size
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// decode is the inverse of encode. It fails if the content is empty, damaged, too old or from the future. The calling function must
// check content.Whole.
func decode(b []byte, now time.Time) (*content, error) {
	c := &content{}
	size := binary.Size(c)
	switch {
	case len(b) == 0:
		return nil, errNew
	case len(b) != size+4 || crc32.ChecksumIEEE(b[:size]) != binary.LittleEndian.Uint32(b[size:]):
		return nil, errDamaged
	}
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, c); err != nil || c.Magic != magic || c.Open < 0 {
		return nil, errDamaged
	}
	written := time.UnixMilli(c.Written)
	switch {
	case written.After(now.Add(skew)):
		return nil, errFuture
	case now.Sub(written) > span:
		return nil, errOld
	}
	for _, s := range c.Ended {
		if s.Calls < 0 || s.At < 0 {
			return nil, errDamaged
		}
		if s.Calls > 0 && time.Unix(s.At, 0).After(now.Add(skew)) {
			return nil, errFuture
		}
	}
	return c, nil
}

// add adds calls that ended in the second of t. Ended is a ring of 64 seconds. So a new second replaces an older second, whose
// calls no longer count.
func (c *content) add(t time.Time, calls int64) {
	s := &c.Ended[t.Unix()%slots]
	if s.At != t.Unix() {
		*s = second{At: t.Unix()}
	}
	s.Calls += calls
}

// errTaken means that another process has locked a file.
var errTaken = errors.New("another process has locked it")

// openLocked opens and locks a file. It creates the file if necessary.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	// Another process may have removed the file between the calls of OpenFile and lock.
	held, err := f.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(path); err == nil && os.SameFile(held, there) {
			return f, nil
		}
	}
	_ = f.Close()
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = errTaken
	}
	return nil, err
}

// read reads a file; see decode.
func read(f *os.File, now time.Time) (*content, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, int64(binary.Size(content{}))+5))
	if err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return decode(b, now)
}
