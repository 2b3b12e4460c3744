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

// TestIncompleteFile checks that a process has AllowMarginFirst for at most 75 s if the file may lack calls. The next process must
// have AllowMarginFirst until the same time. A process that starts after this time must have AllowAll.
func TestIncompleteFile(t *testing.T) {
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
		"other text":       {func() []byte { return []byte("hello\n") }, errDamaged.Error(), 0},
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
			started := time.Now()
			p := start(t, dir, 100)
			p.want(t, ratelimit.AllowMarginFirst, test.calls)
			if !strings.Contains(p.log.String(), test.reason) {
				t.Errorf("%s: got log %s, want %q in it", name, &p.log, test.reason)
			}
			until := p.until
			if d := until.Sub(started); d > 75*time.Second || d <= 0 {
				t.Errorf("%s: the process has AllowMarginFirst for %v, want at most 75 s", name, d)
			}
			p.Take()
			p.kill()
			time.Sleep(5 * time.Second)
			p = start(t, dir, 100)
			p.want(t, ratelimit.AllowMarginFirst, test.calls+1)
			if p.until.Sub(until).Abs() > time.Millisecond {
				t.Errorf("%s: the next process has AllowMarginFirst until %v, want %v", name, p.until, until)
			}
			time.Sleep(75 * time.Second)
			p.kill()
			p = start(t, dir, 100)
			p.want(t, ratelimit.AllowAll, 0)
			p.Close()
		})
	}
}

// TestFileOfVenue checks that the name of the file depends on the venue's URL, but not on credentials, a query or a final slash in
// the URL.
func TestFileOfVenue(t *testing.T) {
	path := func(url string) string {
		return New(Config{Dir: "x", Venue: url, Clock: market.SystemClock{}}).path(true)
	}
	same := path("https://venue.example/base")
	for url, want := range map[string]bool{"https://me:pw@venue.example/base/?key=1": true, "https://other.example/base": false, "https://venue.example": false, "http://venue.example/base": false} {
		if got := path(url) == same; got != want {
			t.Errorf("%s has the same file as https://venue.example/base: got %v, want %v", url, got, want)
		}
	}
}

// TestFileIsSecret checks that only the owner can access the file and its directory. Neither the name of the file nor its text may
// contain the venue or credentials.
func TestFileIsSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "new", "state")
		p := start(t, dir, 100)
		defer p.Close()
		p.Take()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("got files %v (%v), want one", files, err)
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
			t.Errorf("the file has %d bytes, want at most a page, so that a write is atomic", len(b))
		}
		for _, path := range []string{dir, files[0]} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if mode := info.Mode().Perm(); mode&0o077 != 0 {
				t.Errorf("%s: got the mode %v, want no access for other users", path, mode)
			}
		}
	})
}

// TestOpenFails checks that Open logs one line and does not call inherit if it cannot use the directory or the first file.
func TestOpenFails(t *testing.T) {
	for name, path := range map[string]func(dir string) string{
		"the directory is a file": func(dir string) string {
			file := filepath.Join(dir, "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		},
		"the file is a directory": func(dir string) string {
			if err := os.Mkdir(newRecord(dir, 100).path(true), 0o700); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, path(t.TempDir()), 100)
			time.Sleep(time.Minute)
			p.Take()
			p.End()
			p.Close()
			if n := strings.Count(p.log.String(), "calls are not recorded"); p.inherits != 0 || n != 1 {
				t.Errorf("%s: got %d calls of inherit and %d log lines, want 0 and 1: %s", name, p.inherits, n, &p.log)
			}
		})
	}
}

// TestReserveFails checks that a process makes no calls if another process has the first file and the second file cannot be used.
func TestReserveFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first := start(t, dir, 100)
		if err := os.Mkdir(first.path(false), 0o700); err != nil {
			t.Fatal(err)
		}
		p := start(t, dir, 100)
		p.want(t, ratelimit.AllowNone, 0)
		time.Sleep(10 * time.Second)
		first.Close()
		time.Sleep(1100 * time.Millisecond)
		p.want(t, ratelimit.AllowMarginFirst, 0)
		if n := strings.Count(p.log.String(), "calls are not recorded"); n != 1 {
			t.Errorf("got %d log lines, want 1: %s", n, &p.log)
		}
		p.Close()
	})
}

// TestFailedWrite checks that a file that cannot be written is removed, because it would contain too few calls.
func TestFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		makeWhole(t, dir, 100)
		p := start(t, dir, 100)
		_ = p.file.Close()
		p.Take()
		p.Take()
		if p.kill(); strings.Count(p.log.String(), "calls are not recorded") != 1 {
			t.Errorf("got log %s, want one line about the failure", &p.log)
		}
		p = start(t, dir, 100)
		p.want(t, ratelimit.AllowMarginFirst, 0)
		p.Close()
	})
}

// TestOpenLocked checks that openLocked fails while the file is locked. It must succeed again after the locked file was removed.
func TestOpenLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls")
	f, err := openLocked(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openLocked(path); err != errTaken {
		t.Errorf("second open: got %v, want %v", err, errTaken)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again, err := openLocked(path)
	if err != nil {
		t.Fatalf("after the removal: %v", err)
	}
	_ = again.Close()
}
