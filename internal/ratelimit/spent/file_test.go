package spent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/ratelimit"
)

// A file that does not show what was spent is no reason to spend more than the reserve, and the next process knows it too.
func TestFilesThatShowNothing(t *testing.T) {
	var whole []byte
	synctest.Test(t, func(t *testing.T) {
		c := content{Magic: magic, Written: time.Now().UnixMilli(), Whole: time.Now().Add(-time.Minute).UnixMilli()}
		c.add(time.Now(), 12)
		whole = c.encode()
	})
	changed := func(change func(*content)) func() []byte {
		return func() []byte {
			c, err := decode(whole, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			change(c)
			return c.encode()
		}
	}
	for name, test := range map[string]struct {
		text   func() []byte
		reason string
		calls  int
	}{
		"missing":          {nil, errNew.Error(), 0},
		"empty":            {func() []byte { return nil }, errNew.Error(), 0},
		"cut off":          {func() []byte { return whole[:500] }, errDamaged.Error(), 0},
		"longer":           {func() []byte { return append(bytes.Clone(whole), 0) }, errDamaged.Error(), 0},
		"large":            {func() []byte { return make([]byte, 1<<20) }, errDamaged.Error(), 0},
		"a bit is flipped": {func() []byte { b := bytes.Clone(whole); b[40] ^= 1; return b }, errDamaged.Error(), 0},
		"of others":        {func() []byte { return []byte("hello\n") }, errDamaged.Error(), 0},
		"another version":  {changed(func(c *content) { c.Magic[7]++ }), errDamaged.Error(), 0},
		"negative":         {changed(func(c *content) { c.Open = -1 }), errDamaged.Error(), 0},
		"negative second":  {changed(func(c *content) { c.Ended[3] = second{At: 1, Calls: -3} }), errDamaged.Error(), 0},
		"from the future":  {changed(func(c *content) { c.Written += 3000 }), errFuture.Error(), 0},
		"calls in future":  {changed(func(c *content) { c.add(time.Now().Add(10*time.Second), 1) }), errFuture.Error(), 0},
		"old":              {changed(func(c *content) { c.Written -= 60_001 }), errOld.Error(), 0},
		"not whole":        {changed(func(c *content) { c.Whole += 70_000 }), errYoung.Error(), 12},
		"never whole":      {changed(func(c *content) { c.Whole = 1 << 60 }), errYoung.Error(), 12},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			if test.text != nil {
				if err := os.WriteFile(New(Config{Dir: dir, Venue: "https://venue.example/base", Clock: market.SystemClock{}}).path(true), test.text(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			p := begin(t, dir, 100)
			p.want(t, ratelimit.Unsure, test.calls)
			if !strings.Contains(p.log.String(), test.reason) {
				t.Errorf("%s: the log does not say %q: %s", name, test.reason, &p.log)
			}
			until := p.until
			if until.Sub(start) > 75*time.Second || until.Sub(start) <= 0 {
				t.Errorf("%s: unsure until %v", name, until)
			}
			p.Take()
			p.kill()
			time.Sleep(5 * time.Second)
			p = begin(t, dir, 100)
			p.want(t, ratelimit.Unsure, test.calls+1)
			if p.until.Sub(until).Abs() > time.Millisecond {
				t.Errorf("%s: the next process is unsure until %v, want %v", name, p.until, until)
			}
			time.Sleep(75 * time.Second)
			p.kill()
			p = begin(t, dir, 100)
			p.want(t, ratelimit.Alone, 0)
			p.Close()
		})
	}
}

// Two venues have nothing to do with each other, and the same venue is the same whatever else its URL says.
func TestVenuesHaveFilesOfTheirOwn(t *testing.T) {
	path := func(url string) string {
		return New(Config{Dir: "x", Venue: url, Clock: market.SystemClock{}}).path(true)
	}
	same := path("https://venue.example/base")
	for url, want := range map[string]bool{"https://me:pw@venue.example/base/?key=1": true, "https://other.example/base": false, "https://venue.example": false, "http://venue.example/base": false} {
		if got := path(url) == same; got != want {
			t.Errorf("%s has the same file: %v", url, got)
		}
	}
}

// The file is its owner's alone and tells nothing about the venue or anybody.
func TestFilesAreSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "new", "state")
		p := begin(t, dir, 100)
		defer p.Close()
		p.Take()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %v", files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"user", "pw", "s3cret", "venue.example"} {
			if strings.Contains(files[0]+string(b), secret) {
				t.Errorf("%s contains %q", files[0], secret)
			}
		}
		if len(b) > os.Getpagesize() {
			t.Errorf("%d bytes may be written in part", len(b))
		}
		for _, path := range []string{dir, files[0]} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	})
}

// A directory that can't be used is said once, and nothing is told.
func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := begin(t, file, 100)
		time.Sleep(time.Minute)
		p.Take()
		p.End()
		p.Close()
		if p.told != 0 || strings.Count(p.log.String(), "calls are not recorded") != 1 {
			t.Errorf("told %d times: %s", p.told, &p.log)
		}
	})
}

// A file that can't be written is removed, since it shows too little.
func TestFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		age(t, dir, 100)
		p := begin(t, dir, 100)
		_ = p.file.Close()
		p.Take()
		p.Take()
		if p.kill(); strings.Count(p.log.String(), "calls are not recorded") != 1 {
			t.Errorf("the log says: %s", &p.log)
		}
		p = begin(t, dir, 100)
		p.want(t, ratelimit.Unsure, 0)
		p.Close()
	})
}

// Two can't open the same file, and a file that was removed stands in nobody's way.
func TestOpenLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	f, err := openLocked(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openLocked(path); err != errTaken {
		t.Errorf("opened twice: %v", err)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again, err := openLocked(path)
	if err != nil {
		t.Fatalf("another file of the same name: %v", err)
	}
	_ = again.Close()
}
