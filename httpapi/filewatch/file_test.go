package filewatch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// user records the content that it gets. Its accessors take the lock, since the race detector does not know the order that
// fake time implies.
type user struct {
	mu    sync.Mutex
	used  []string
	fail  error
	gone  int
	calls int
	log   buffer
}

func (u *user) setFail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fail = err
}

// counts returns the numbers of calls of Use and of Gone.
func (u *user) counts() (calls, gone int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls, u.gone
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// take returns what was written since the last call.
func (b *buffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.b.Reset()
	return b.b.String()
}

func (u *user) options(path string) Options {
	return Options{
		What: "test file", Path: path, MaxSize: 100, Log: slog.New(slog.NewTextHandler(&u.log, nil)),
		Use: func(content []byte) error {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.calls++
			if u.fail != nil {
				return u.fail
			}
			u.used = append(u.used, string(content))
			return nil
		},
		Gone: func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.gone++
		},
	}
}

// expect checks the content in use when all goroutines are blocked.
func (u *user) expect(t *testing.T, content string) {
	t.Helper()
	synctest.Wait()
	if got := u.last(); got != content {
		t.Fatalf("%q is in use, want %q", got, content)
	}
}

func (u *user) last() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used[len(u.used)-1]
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// age sets an old modification time, so that later polls compare the metadata only.
func age(t *testing.T, path string, hours int) {
	t.Helper()
	then := time.Now().Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

// stamp gives a file the modification time of another file.
func stamp(t *testing.T, path, other string) {
	t.Helper()
	info, err := os.Stat(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// run opens a file and polls it until the test ends.
func run(t *testing.T, o Options) *File {
	t.Helper()
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return f
}

// poll waits for n polls.
func poll(n int) {
	time.Sleep(time.Duration(n) * every)
	synctest.Wait()
}

func TestChangesAreSeenWithinASecond(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"written in place": func(t *testing.T, path string) { write(t, path, `[2]`) },
		"renamed over": func(t *testing.T, path string) {
			write(t, path+".new", `[2]`)
			age(t, path+".new", 2) // older than what it replaces
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"renamed over, with the same time and size": func(t *testing.T, path string) {
			write(t, path+".new", `[2]`)
			stamp(t, path+".new", path)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"written in place, with the same time": func(t *testing.T, path string) {
			write(t, path+".old", ``)
			stamp(t, path+".old", path)
			write(t, path, ` [2]`)
			stamp(t, path, path+".old")
		},
		"removed and made": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			poll(1)
			write(t, path, `[2]`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, path := &user{}, filepath.Join(t.TempDir(), "f")
				write(t, path, `[1]`)
				age(t, path, 1)
				f := run(t, u.options(path))
				poll(3)
				u.expect(t, `[1]`)
				before := f.Status().Since
				change(t, path)
				poll(2)
				if got := strings.TrimSpace(u.last()); got != `[2]` {
					t.Errorf("%s is in force", got)
				}
				if calls, gone := u.counts(); calls != 2 || gone != 0 {
					t.Errorf("%d uses, gone %d times", calls, gone)
				}
				if s := f.Status(); s.Err != nil || !s.Since.After(before) {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestSameMetadata changes a file so soon after it was read that its metadata stay the same.
func TestSameMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, path := &user{}, filepath.Join(t.TempDir(), "f")
		stamp := time.Now()
		write(t, path, `[1]`)
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
		run(t, u.options(path))
		poll(1)
		write(t, path, `[2]`)
		if err := os.Chtimes(path, stamp, stamp); err != nil {
			t.Fatal(err)
		}
		poll(1)
		u.expect(t, `[2]`)
	})
}

// TestUnchangedIsNotRead changes a file without a change of its metadata. Only Reload notices.
func TestUnchangedIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, path := &user{}, filepath.Join(t.TempDir(), "f")
		write(t, path, `[1]`)
		age(t, path, 1)
		f := run(t, u.options(path))
		poll(2)
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, `[2]`)
		if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		poll(4)
		u.expect(t, `[1]`)
		if err := f.Reload(); err != nil { // it reads the file in any case
			t.Fatal(err)
		}
		u.expect(t, `[2]`)
	})
}

// TestVolume swaps the directory behind symbolic links as Kubernetes does.
func TestVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, dir := &user{}, t.TempDir()
		for name, content := range map[string]string{"..1": `[1]`, "..2": `[2]`} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name, "f"), content)
			age(t, filepath.Join(dir, name, "f"), 1)
		}
		link := func(from, to string) {
			if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
				t.Fatal(err)
			}
		}
		link("..data", "..1")
		link("f", "..data/f")
		o := u.options(filepath.Join(dir, "f"))
		o.Private = true
		f := run(t, o)
		u.expect(t, `[1]`)
		link("..tmp", "..2")
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		poll(2)
		u.expect(t, `[2]`)
		if err := os.Chmod(filepath.Join(dir, "..2/f"), 0o644); err != nil { // the target's mode counts
			t.Fatal(err)
		}
		poll(1)
		if err := f.Status().Err; err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%v", err)
		}
	})
}

func TestBrokenFileKeepsWhatIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, path := &user{}, filepath.Join(t.TempDir(), "f")
		write(t, path, `[1]`)
		f := run(t, u.options(path))
		for _, broken := range []struct{ content, want string }{
			{`[2`, "it is not JSON: line 1, column 2"},
			{"[\n 2,\n é]", "it is not JSON: line 3, column 2"},
			{" \n", "it is empty"},
			{"[\"\xff\"]", "it is not UTF-8"},
			{`["` + strings.Repeat("x", 100) + `"]`, "it is larger than 100 bytes"},
		} {
			u.log.take()
			write(t, path, broken.content)
			poll(10)
			u.expect(t, `[1]`)
			err := f.Status().Err
			if err == nil || err.Error() != "test file "+path+": "+broken.want {
				t.Errorf("%q: %v, want %q", broken.content, err, broken.want)
			}
			log := u.log.take()
			if n := strings.Count(log, "level=ERROR"); n != 1 || !strings.Contains(log, "not in use") {
				t.Errorf("%q was logged %d times:\n%s", broken.content, n, log)
			}
		}
		bad := errors.New("not so")
		u.setFail(bad)
		before, _ := u.counts()
		write(t, path, `[3]`)
		poll(10)
		if calls, _ := u.counts(); !errors.Is(f.Status().Err, bad) || calls != before+1 {
			t.Errorf("%v after %d uses", f.Status().Err, calls-before)
		}
		u.setFail(nil)
		write(t, path, `[4]`)
		poll(2)
		u.expect(t, `[4]`)
		if log := u.log.take(); f.Status().Err != nil || !strings.Contains(log, "valid again") {
			t.Errorf("%v:\n%s", f.Status().Err, log)
		}
	})
}

func TestPermissionsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, path := &user{}, filepath.Join(t.TempDir(), "f")
		write(t, path, `[1]`)
		age(t, path, 1)
		o := u.options(path)
		o.Private = true
		f := run(t, o)
		for _, step := range []struct {
			mode fs.FileMode
			ok   bool
		}{{0o640, false}, {0o400, true}, {0o604, false}, {0o600, true}} {
			if err := os.Chmod(path, step.mode); err != nil {
				t.Fatal(err)
			}
			poll(2)
			if err := f.Status().Err; (err == nil) != step.ok {
				t.Errorf("mode %o: %v", step.mode, err)
			}
		}
		u.expect(t, `[1]`)
		if calls, _ := u.counts(); calls != 1 {
			t.Errorf("the same content was used %d times", calls)
		}
	})
}

func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, path := &user{}, filepath.Join(t.TempDir(), "f")
		write(t, path, `[1]`)
		age(t, path, 1)
		f := run(t, u.options(path))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := f.Reload(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
		}
		poll(goneAfter - 1)
		if _, gone := u.counts(); gone != 0 {
			t.Error("gone too early")
		}
		poll(10)
		if _, gone := u.counts(); gone != 1 || !errors.Is(f.Status().Err, fs.ErrNotExist) || !f.Status().Since.IsZero() {
			t.Errorf("gone %d times, %+v", gone, f.Status())
		}
		write(t, path, `[1]`) // the same content as before
		age(t, path, 1)
		poll(2)
		if calls, _ := u.counts(); calls != 2 || f.Status().Err != nil || f.Status().Since.IsZero() {
			t.Errorf("%d uses, %+v", calls, f.Status())
		}
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		poll(goneAfter)
		if err := os.Rename(path+".away", path); err != nil { // the same file as before
			t.Fatal(err)
		}
		poll(2)
		if calls, gone := u.counts(); calls != 3 || gone != 2 || f.Status().Err != nil {
			t.Errorf("%d uses, gone %d times, %+v", calls, gone, f.Status())
		}
	})
}

// TestNoGone has no Gone, so the content stays in use. The misses of two gaps are not added up.
func TestNoGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, path := &user{}, filepath.Join(t.TempDir(), "f")
		write(t, path, `[1]`)
		age(t, path, 1)
		f := run(t, u.options(path))
		for range 3 {
			if err := os.Rename(path, path+".away"); err != nil {
				t.Fatal(err)
			}
			poll(goneAfter - 1)
			if err := os.Rename(path+".away", path); err != nil {
				t.Fatal(err)
			}
			poll(1)
		}
		if _, gone := u.counts(); gone != 0 || f.Status().Err != nil {
			t.Errorf("gone %d times, %v", gone, f.Status().Err)
		}
		if log := u.log.take(); log != "" {
			t.Error(log)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		u, path := &user{}, filepath.Join(t.TempDir(), "f")
		write(t, path, `[1]`)
		o := u.options(path)
		o.Gone = nil
		f := run(t, o)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		poll(goneAfter + 5)
		log := u.log.take()
		if s := f.Status(); s.Err == nil || s.Since.IsZero() || strings.Count(log, "level=ERROR") != 1 {
			t.Errorf("%+v\n%s", s, log)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "open"), `[1]`)
	if err := os.Chmod(filepath.Join(dir, "open"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"open":    "its mode 0644 gives other users access to its secrets: chmod 600",
		"pipe":    "it is not a regular file",
		"":        "it is not a regular file",
		"missing": "no such file or directory",
	} {
		u := &user{}
		o := u.options(filepath.Join(dir, name))
		o.Private, o.Log = true, slog.New(slog.NewTextHandler(io.Discard, nil))
		if f, err := Open(o); f != nil || err == nil || err.Error() != "test file "+o.Path+": "+want {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestExposed(t *testing.T) {
	for _, test := range []struct {
		mode        fs.FileMode
		owner, self int
		want        bool
	}{
		{0o600, 7, 7, false}, {0o400, 7, 7, false}, {0o700, 7, 7, false},
		{0o640, 7, 7, true}, {0o604, 7, 7, true}, {0o620, 7, 7, true}, {0o601, 7, 7, true}, {0o644, 7, 7, true},
		{0o440, 0, 7, false}, {0o640, 0, 7, false}, // how a Kubernetes volume with an fsGroup looks
		{0o444, 0, 7, true}, {0o660, 0, 7, true}, {0o650, 0, 7, true},
		{0o440, 0, 0, true}, {0o600, 0, 0, false},
		{0o440, 8, 7, true}, {0o440, -1, -1, true}, {0o600, -1, -1, false},
	} {
		if got := exposed(test.mode, test.owner, test.self); got != test.want {
			t.Errorf("%04o of %d, read by %d: %v", test.mode, test.owner, test.self, got)
		}
	}
}

// TestStatusDoesNotWait asks for the status while the file is in use.
func TestStatusDoesNotWait(t *testing.T) {
	u, path := &user{}, filepath.Join(t.TempDir(), "f")
	write(t, path, `[1]`)
	o := u.options(path)
	began, end := make(chan struct{}), make(chan struct{})
	first := true
	o.Use = func([]byte) error {
		if !first {
			close(began)
			<-end
		}
		first = false
		return nil
	}
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, `[2]`)
	done := make(chan error)
	go func() { done <- f.Reload() }()
	<-began
	if s := f.Status(); s.Err != nil {
		t.Error(s.Err)
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
