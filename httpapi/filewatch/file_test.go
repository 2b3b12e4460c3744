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

func (x *fixture) withLock(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

// Write makes a fixture the io.Writer of the log.
func (x *fixture) Write(p []byte) (n int, err error) {
	x.withLock(func() { n, err = x.log.Write(p) })
	return n, err
}

func (x *fixture) options(path string) Options {
	return Options{
		What: "test file", Path: path, MaxSize: 100, Log: slog.New(slog.NewTextHandler(x, nil)),
		Use: func(content []byte) (err error) {
			x.withLock(func() {
				x.calls++
				if err = x.fail; err == nil {
					x.last = string(content)
				}
			})
			return err
		},
		Gone: func() { x.withLock(func() { x.gone++ }) },
	}
}

// runPolled runs a test in a synctest bubble. It polls a file with the content [1] that was last changed an hour ago.
func runPolled(t *testing.T, change func(*Options), test func(x *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		x := &fixture{t: t, path: filepath.Join(t.TempDir(), "f")}
		write(t, x.path, `[1]`)
		setAge(t, x.path, 1)
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
	x.withLock(func() {
		if x.last != content || x.calls != calls || x.gone != gone || (x.Status().Err == nil) != valid {
			x.t.Errorf("the content %q is in use after %d calls of Use and %d calls of Gone, with the status %+v; want %q after %d and %d calls, valid: %v", x.last, x.calls, x.gone, x.Status(), content, calls, gone, valid)
		}
	})
}

// newLog returns the log lines since the last call of newLog.
func (x *fixture) newLog() (text string) {
	x.withLock(func() { text = x.log.String(); x.log.Reset() })
	return text
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// setAge sets a file's modification time to the given number of hours ago, so that later polls trust its metadata.
func setAge(t *testing.T, path string, hours int) {
	t.Helper()
	setModTime(t, path, time.Now().Add(-time.Duration(hours)*time.Hour))
}

func setModTime(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func modTime(t *testing.T, path string) time.Time {
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

// waitForPolls waits until n polls have been made.
func waitForPolls(n int) {
	time.Sleep(time.Duration(n) * interval)
	synctest.Wait()
}

func TestChangesAreSeenWithinASecond(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"written in place": func(t *testing.T, path string) { write(t, path, `[2]`) },
		"renamed over, with an older time": func(t *testing.T, path string) {
			write(t, path+".new", `[2]`)
			setAge(t, path+".new", 2)
			rename(t, path+".new", path)
		},
		"renamed over, with the same time and size": func(t *testing.T, path string) {
			write(t, path+".new", `[2]`)
			setModTime(t, path+".new", modTime(t, path))
			rename(t, path+".new", path)
		},
		"written in place, with the same time": func(t *testing.T, path string) {
			at := modTime(t, path)
			write(t, path, `[2] `)
			setModTime(t, path, at)
		},
		"removed and created": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			waitForPolls(1)
			write(t, path, `[2]`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			runPolled(t, nil, func(x *fixture) {
				waitForPolls(3)
				x.want(`[1]`, 1, 0, true)
				before := x.Status().Since
				change(x.t, x.path)
				waitForPolls(2)
				x.last = strings.TrimSpace(x.last)
				x.want(`[2]`, 2, 0, true)
				if since := x.Status().Since; !since.After(before) {
					t.Errorf("Since is %v after the change, want a time after %v", since, before)
				}
			})
		})
	}
}

// TestSameMetadata checks changes of the content that keep the metadata. While the file is younger than minAge, a poll notices such
// a change. Later only Reload notices it.
func TestSameMetadata(t *testing.T) {
	runPolled(t, nil, func(x *fixture) {
		now := time.Now()
		write(x.t, x.path, `[2]`)
		setModTime(x.t, x.path, now)
		waitForPolls(1)
		x.want(`[2]`, 2, 0, true)
		write(x.t, x.path, `[3]`)
		setModTime(x.t, x.path, now)
		waitForPolls(1)
		x.want(`[3]`, 3, 0, true)
		waitForPolls(5)
		write(x.t, x.path, `[4]`)
		setModTime(x.t, x.path, now)
		waitForPolls(4)
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
			setAge(t, filepath.Join(dir, name, "f"), 1)
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
		waitForPolls(2)
		x.want(`[2]`, 2, 0, true)
		if err := os.Chmod(filepath.Join(dir, "..2/f"), 0o644); err != nil { // only the mode of the symbolic link's target counts
			t.Fatal(err)
		}
		waitForPolls(1)
		if err := x.Status().Err; err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a secret file with the mode 0644: error %v, want an error that contains \"chmod 600\"", err)
		}
	})
}

func TestBrokenFileChangesNothing(t *testing.T) {
	runPolled(t, nil, func(x *fixture) {
		for _, broken := range []struct{ content, want string }{
			{`[2`, "it is not JSON: line 1, column 2"},
			{"[\n 2,\n é]", "it is not JSON: line 3, column 2"},
			{" \n", "it is empty"},
			{"[\"\xff\"]", "it is not UTF-8"},
			{`["` + strings.Repeat("x", 100) + `"]`, "it is larger than 100 bytes"},
		} {
			write(x.t, x.path, broken.content)
			waitForPolls(10)
			x.want(`[1]`, 1, 0, false)
			if err := x.Status().Err; err.Error() != "test file "+x.path+": "+broken.want {
				t.Errorf("the content %q: error %v, want an error that ends with %q", broken.content, err, broken.want)
			}
			if log := x.newLog(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "earlier content stays in use") {
				t.Errorf("the content %q: the log is %q, want one error", broken.content, log)
			}
		}
		bad := errors.New("bad")
		x.withLock(func() { x.fail = bad })
		write(x.t, x.path, `[3]`)
		waitForPolls(10)
		if x.want(`[1]`, 2, 0, false); !errors.Is(x.Status().Err, bad) {
			t.Errorf("after Use has failed, Status.Err is %v, want the error of Use", x.Status().Err)
		}
		x.withLock(func() { x.fail = nil })
		write(x.t, x.path, `[4]`)
		waitForPolls(2)
		x.want(`[4]`, 3, 0, true)
		if log := x.newLog(); !strings.Contains(log, "valid again") {
			t.Errorf("the log is %q, want a line that contains \"valid again\"", log)
		}
	})
}

func TestPermissionsAreCheckedAgain(t *testing.T) {
	runPolled(t, func(o *Options) { o.Private = true }, func(x *fixture) {
		for _, step := range []struct {
			mode  fs.FileMode
			valid bool
		}{{0o640, false}, {0o400, true}, {0o604, false}, {0o600, true}} {
			if err := os.Chmod(x.path, step.mode); err != nil {
				t.Fatal(err)
			}
			waitForPolls(2)
			x.want(`[1]`, 1, 0, step.valid)
		}
	})
}

func TestGone(t *testing.T) {
	runPolled(t, nil, func(x *fixture) {
		if err := os.Remove(x.path); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := x.Reload(); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Reload of a missing file returned %v, want %v", err, fs.ErrNotExist)
			}
		}
		waitForPolls(goneAfter - 1)
		x.want(`[1]`, 1, 0, false)
		waitForPolls(10)
		if x.want(`[1]`, 1, 1, false); !errors.Is(x.Status().Err, fs.ErrNotExist) || !x.Status().Since.IsZero() {
			t.Errorf("after Gone, the status is %+v, want the error %v and no time", x.Status(), fs.ErrNotExist)
		}
		if log := x.newLog(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "the test file is invalid; none of its content is in use") {
			t.Errorf("the log is %q", log)
		}
		write(x.t, x.path, `{`)
		waitForPolls(2)
		if log := x.newLog(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "the test file is invalid; none of its content is in use") {
			t.Errorf("the log is %q", log)
		}
		write(x.t, x.path, `[1]`) // the same content as before
		setAge(x.t, x.path, 1)
		waitForPolls(2)
		if x.want(`[1]`, 2, 1, true); x.Status().Since.IsZero() {
			t.Errorf("after the file exists again, the status is %+v, want a time in Since", x.Status())
		}
		rename(x.t, x.path, x.path+".away")
		waitForPolls(goneAfter)
		rename(x.t, x.path+".away", x.path) // the same file as before
		waitForPolls(2)
		x.want(`[1]`, 3, 2, true)
	})
}

// TestBriefGaps checks that Gone is not called if the file is missing in fewer than goneAfter consecutive polls.
func TestBriefGaps(t *testing.T) {
	runPolled(t, nil, func(x *fixture) {
		for range 3 {
			rename(x.t, x.path, x.path+".away")
			waitForPolls(goneAfter - 1)
			rename(x.t, x.path+".away", x.path)
			waitForPolls(1)
		}
		if x.want(`[1]`, 1, 0, true); x.newLog() != "" {
			t.Error("a short absence of the file was logged")
		}
	})
}

// TestWithoutGone checks that the content of a removed file stays in use if Options.Gone is nil.
func TestWithoutGone(t *testing.T) {
	runPolled(t, func(o *Options) { o.Gone = nil }, func(x *fixture) {
		if err := os.Remove(x.path); err != nil {
			t.Fatal(err)
		}
		waitForPolls(goneAfter + 5)
		x.want(`[1]`, 1, 0, false)
		if log := x.newLog(); x.Status().Since.IsZero() || strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "earlier content stays in use") {
			t.Errorf("the status is %+v and the log is %q; want a time in Since and one error", x.Status(), log)
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
			t.Errorf("Open of %q: error %v, want an error that ends with %q", name, err, want)
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
			t.Errorf("exposed(mode %04o, owner %d, self %d) is %v, want %v", test.mode, test.owner, test.self, got, test.want)
		}
	}
}

// TestStatusDoesNotWait checks that Status returns during a call of Use.
func TestStatusDoesNotWait(t *testing.T) {
	runPolled(t, nil, func(x *fixture) {
		use, end := x.o.Use, make(chan struct{})
		x.o.Use = func(content []byte) error { <-end; return use(content) }
		write(x.t, x.path, `[2]`)
		done := make(chan error)
		go func() { done <- x.Reload() }()
		synctest.Wait()
		if s := x.Status(); s.Err != nil {
			t.Errorf("during a call of Use, Status.Err is %v, want nil", s.Err)
		}
		close(end)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
