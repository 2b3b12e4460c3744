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

// runPolled runs a test in a synctest bubble. It polls a file with the content [1].
func runPolled(t *testing.T, change func(*Options), test func(x *fixture)) {
	synctest.Test(t, func(t *testing.T) {
		x := &fixture{t: t, path: filepath.Join(t.TempDir(), "f")}
		write(t, x.path, `[1]`)
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
	runPolled(t, nil, func(x *fixture) {
		before, info := x.Status().Since, func() fs.FileInfo {
			info, err := os.Stat(x.path)
			if err != nil {
				t.Fatal(err)
			}
			return info
		}
		waitForPolls(3)
		x.want(`[1]`, 1, 0, true)
		at := info().ModTime()
		write(t, x.path, `[2]`) // with the same size and time
		if err := os.Chtimes(x.path, at, at); err != nil {
			t.Fatal(err)
		}
		waitForPolls(1)
		x.want(`[2]`, 2, 0, true)
		if since := x.Status().Since; !since.After(before) {
			t.Errorf("Since is %v after the change, want a time after %v", since, before)
		}
		write(t, x.path+".new", `[3]`)
		rename(t, x.path+".new", x.path)
		waitForPolls(1)
		x.want(`[3]`, 3, 0, true)
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
		}{{0o620, false}, {0o640, true}, {0o604, false}, {0o440, true}, {0o610, false}, {0o600, true}} {
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
		waitForPolls(2)
		if x.want(`[1]`, 2, 1, true); x.Status().Since.IsZero() {
			t.Errorf("after the file exists again, the status is %+v, want a time in Since", x.Status())
		}
		rename(x.t, x.path, x.path+".away")
		waitForPolls(1)
		rename(x.t, x.path+".away", x.path) // the same file as before
		waitForPolls(2)
		x.want(`[1]`, 3, 2, true)
	})
}

// TestWithoutGone checks that the content of a removed file stays in use if Options.Gone is nil.
func TestWithoutGone(t *testing.T) {
	runPolled(t, func(o *Options) { o.Gone = nil }, func(x *fixture) {
		if err := os.Remove(x.path); err != nil {
			t.Fatal(err)
		}
		waitForPolls(5)
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
