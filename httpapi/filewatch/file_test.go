package filewatch

import (
	"bytes"
	"context"
	"errors"
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

// fixture is a polled file that records how it is used. Its lock is only for the race detector, which does not know the order
// that the fake time of synctest guarantees.
type fixture struct {
	*File
	t    *testing.T
	path string

	mu          sync.Mutex
	last        string
	calls, gone int
	fail        error
	log         bytes.Buffer
}

func (x *fixture) locked(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

// Write makes a fixture the io.Writer of the log.
func (x *fixture) Write(p []byte) (n int, err error) {
	x.locked(func() { n, err = x.log.Write(p) })
	return n, err
}

func (x *fixture) options(path string) Options {
	return Options{
		What: "test file", Path: path, MaxSize: 100, Log: slog.New(slog.NewTextHandler(x, nil)),
		Use: func(content []byte) (err error) {
			x.locked(func() {
				x.calls++
				if err = x.fail; err == nil {
					x.last = string(content)
				}
			})
			return err
		},
		Gone: func() { x.locked(func() { x.gone++ }) },
	}
}

// polled runs a test in a synctest bubble. It polls a file with the content [1] that was last changed an hour ago.
func polled(t *testing.T, change func(*Options), test func(x *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		x := &fixture{t: t, path: filepath.Join(t.TempDir(), "f")}
		write(t, x.path, `[1]`)
		age(t, x.path, 1)
		o := x.options(x.path)
		if change != nil {
			change(&o)
		}
		x.run(o)
		test(x)
	})
}

func (x *fixture) run(o Options) {
	x.t.Helper()
	var err error
	if x.File, err = Open(o); err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(x.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { x.Run(ctx) })
	x.t.Cleanup(func() { cancel(); wg.Wait() })
}

// want checks the content in use, the numbers of calls of Use and Gone, and whether the file is valid.
func (x *fixture) want(content string, calls, gone int, valid bool) {
	x.t.Helper()
	synctest.Wait()
	x.locked(func() {
		if x.last != content || x.calls != calls || x.gone != gone || (x.Status().Err == nil) != valid {
			x.t.Errorf("%q is in use after %d uses, gone %d times, %+v; want %q, %d, %d, %v", x.last, x.calls, x.gone, x.Status(), content, calls, gone, valid)
		}
	})
}

// logged returns the log lines since the last call of logged.
func (x *fixture) logged() (text string) {
	x.locked(func() { text = x.log.String(); x.log.Reset() })
	return text
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// age sets a file's modification time to the given number of hours ago, so that later polls trust its metadata.
func age(t *testing.T, path string, hours int) {
	t.Helper()
	stamp(t, path, time.Now().Add(-time.Duration(hours)*time.Hour))
}

func stamp(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func changed(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// polls waits until n polls have been made.
func polls(n int) {
	time.Sleep(time.Duration(n) * interval)
	synctest.Wait()
}

func TestChangesAreSeenWithinASecond(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"written in place": func(t *testing.T, path string) { write(t, path, `[2]`) },
		"renamed over, with an older time": func(t *testing.T, path string) {
			write(t, path+".new", `[2]`)
			age(t, path+".new", 2)
			rename(t, path+".new", path)
		},
		"renamed over, with the same time and size": func(t *testing.T, path string) {
			write(t, path+".new", `[2]`)
			stamp(t, path+".new", changed(t, path))
			rename(t, path+".new", path)
		},
		"written in place, with the same time": func(t *testing.T, path string) {
			at := changed(t, path)
			write(t, path, `[2] `)
			stamp(t, path, at)
		},
		"removed and created": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			polls(1)
			write(t, path, `[2]`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			polled(t, nil, func(x *fixture) {
				polls(3)
				x.want(`[1]`, 1, 0, true)
				before := x.Status().Since
				change(x.t, x.path)
				polls(2)
				x.last = strings.TrimSpace(x.last)
				x.want(`[2]`, 2, 0, true)
				if since := x.Status().Since; !since.After(before) {
					t.Errorf("in use since %v, before since %v", since, before)
				}
			})
		})
	}
}

// TestSameMetadata checks changes of the content that keep the metadata. While the file is younger than minAge, a poll notices such
// a change. Later only Reload notices it.
func TestSameMetadata(t *testing.T) {
	polled(t, nil, func(x *fixture) {
		now := time.Now()
		write(x.t, x.path, `[2]`)
		stamp(x.t, x.path, now)
		polls(1)
		x.want(`[2]`, 2, 0, true)
		write(x.t, x.path, `[3]`)
		stamp(x.t, x.path, now)
		polls(1)
		x.want(`[3]`, 3, 0, true)
		polls(5)
		write(x.t, x.path, `[4]`)
		stamp(x.t, x.path, now)
		polls(4)
		x.want(`[3]`, 3, 0, true)
		if err := x.Reload(); err != nil {
			t.Fatal(err)
		}
		x.want(`[4]`, 4, 0, true)
	})
}

// TestVolume checks that a poll notices when Kubernetes replaces the directory behind the symbolic links.
func TestVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, dir := &fixture{t: t}, t.TempDir()
		for name, content := range map[string]string{"..1": `[1]`, "..2": `[2]`} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name, "f"), content)
			age(t, filepath.Join(dir, name, "f"), 1)
		}
		for from, to := range map[string]string{"..data": "..1", "..tmp": "..2", "f": "..data/f"} {
			if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
				t.Fatal(err)
			}
		}
		o := x.options(filepath.Join(dir, "f"))
		o.Private = true
		x.run(o)
		x.want(`[1]`, 1, 0, true)
		rename(t, filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data"))
		polls(2)
		x.want(`[2]`, 2, 0, true)
		if err := os.Chmod(filepath.Join(dir, "..2/f"), 0o644); err != nil { // only the mode of the symbolic link's target counts
			t.Fatal(err)
		}
		polls(1)
		if err := x.Status().Err; err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%v", err)
		}
	})
}

func TestBrokenFileChangesNothing(t *testing.T) {
	polled(t, nil, func(x *fixture) {
		for _, broken := range []struct{ content, want string }{
			{`[2`, "it is not JSON: line 1, column 2"},
			{"[\n 2,\n é]", "it is not JSON: line 3, column 2"},
			{" \n", "it is empty"},
			{"[\"\xff\"]", "it is not UTF-8"},
			{`["` + strings.Repeat("x", 100) + `"]`, "it is larger than 100 bytes"},
		} {
			write(x.t, x.path, broken.content)
			polls(10)
			x.want(`[1]`, 1, 0, false)
			if err := x.Status().Err; err.Error() != "test file "+x.path+": "+broken.want {
				t.Errorf("%q: %v, want %q", broken.content, err, broken.want)
			}
			if log := x.logged(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "earlier content stays in use") {
				t.Errorf("%q was logged as:\n%s", broken.content, log)
			}
		}
		bad := errors.New("bad")
		x.locked(func() { x.fail = bad })
		write(x.t, x.path, `[3]`)
		polls(10)
		if x.want(`[1]`, 2, 0, false); !errors.Is(x.Status().Err, bad) {
			t.Errorf("%v", x.Status().Err)
		}
		x.locked(func() { x.fail = nil })
		write(x.t, x.path, `[4]`)
		polls(2)
		x.want(`[4]`, 3, 0, true)
		if log := x.logged(); !strings.Contains(log, "valid again") {
			t.Errorf("logged:\n%s", log)
		}
	})
}

func TestPermissionsAreCheckedAgain(t *testing.T) {
	polled(t, func(o *Options) { o.Private = true }, func(x *fixture) {
		for _, step := range []struct {
			mode  fs.FileMode
			valid bool
		}{{0o640, false}, {0o400, true}, {0o604, false}, {0o600, true}} {
			if err := os.Chmod(x.path, step.mode); err != nil {
				t.Fatal(err)
			}
			polls(2)
			x.want(`[1]`, 1, 0, step.valid)
		}
	})
}

func TestGone(t *testing.T) {
	polled(t, nil, func(x *fixture) {
		if err := os.Remove(x.path); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := x.Reload(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
		}
		polls(goneAfter - 1)
		x.want(`[1]`, 1, 0, false)
		polls(10)
		if x.want(`[1]`, 1, 1, false); !errors.Is(x.Status().Err, fs.ErrNotExist) || !x.Status().Since.IsZero() {
			t.Errorf("%+v", x.Status())
		}
		if log := x.logged(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "the test file is invalid; none of its content is in use") {
			t.Errorf("the log is %q", log)
		}
		write(x.t, x.path, `{`)
		polls(2)
		if log := x.logged(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "the test file is invalid; none of its content is in use") {
			t.Errorf("the log is %q", log)
		}
		write(x.t, x.path, `[1]`) // the same content as before
		age(x.t, x.path, 1)
		polls(2)
		if x.want(`[1]`, 2, 1, true); x.Status().Since.IsZero() {
			t.Errorf("%+v", x.Status())
		}
		rename(x.t, x.path, x.path+".away")
		polls(goneAfter)
		rename(x.t, x.path+".away", x.path) // the same file as before
		polls(2)
		x.want(`[1]`, 3, 2, true)
	})
}

// TestBriefGaps checks that Gone is not called if the file is missing in fewer than goneAfter consecutive polls.
func TestBriefGaps(t *testing.T) {
	polled(t, nil, func(x *fixture) {
		for range 3 {
			rename(x.t, x.path, x.path+".away")
			polls(goneAfter - 1)
			rename(x.t, x.path+".away", x.path)
			polls(1)
		}
		if x.want(`[1]`, 1, 0, true); x.logged() != "" {
			t.Error("a gap was logged")
		}
	})
}

// TestWithoutGone checks that the content of a removed file stays in use if Options.Gone is nil.
func TestWithoutGone(t *testing.T) {
	polled(t, func(o *Options) { o.Gone = nil }, func(x *fixture) {
		if err := os.Remove(x.path); err != nil {
			t.Fatal(err)
		}
		polls(goneAfter + 5)
		x.want(`[1]`, 1, 0, false)
		if log := x.logged(); x.Status().Since.IsZero() || strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "earlier content stays in use") {
			t.Errorf("%+v, the log is %q", x.Status(), log)
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
		"open":    "its mode 0644 lets other users read or write it; it holds secrets: chmod 600",
		"pipe":    "it is not a regular file",
		"":        "it is not a regular file",
		"missing": "no such file or directory",
	} {
		o := new(fixture).options(filepath.Join(dir, name))
		o.Private = true
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
		{0o440, 0, 7, false}, {0o640, 0, 7, false}, // a Kubernetes volume with an fsGroup
		{0o444, 0, 7, true}, {0o660, 0, 7, true}, {0o650, 0, 7, true},
		{0o440, 0, 0, true}, {0o600, 0, 0, false},
		{0o440, 8, 7, true}, {0o440, -1, -1, true}, {0o600, -1, -1, false},
	} {
		if got := exposed(test.mode, test.owner, test.self); got != test.want {
			t.Errorf("%04o of %d, read by %d: %v", test.mode, test.owner, test.self, got)
		}
	}
}

// TestStatusDoesNotWait checks that Status returns during a call of Use.
func TestStatusDoesNotWait(t *testing.T) {
	polled(t, nil, func(x *fixture) {
		use, end := x.o.Use, make(chan struct{})
		x.o.Use = func(content []byte) error { <-end; return use(content) }
		write(x.t, x.path, `[2]`)
		done := make(chan error)
		go func() { done <- x.Reload() }()
		synctest.Wait()
		if s := x.Status(); s.Err != nil {
			t.Error(s.Err)
		}
		close(end)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
