package filewatch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	interval = 500 * time.Millisecond
	// goneAfter is the number of consecutive polls after which a missing file counts as gone. It is greater than 1, because some
	// programs remove a file before they write a new one.
	goneAfter = 3
	// If a file's last change is older than minAge, equal metadata proves that the file is unchanged. A file that changed more
	// recently may change again in the same tick of the file system's clock. The metadata would not show the second change.
	minAge = 2 * time.Second
)

// Options say which file to load and how to use it. Path, MaxSize, Use and Log are required.
type Options struct {
	// What names the file in errors and logs, such as "accounts file".
	What string
	Path string
	// MaxSize is the largest size of the file in bytes.
	MaxSize int64
	// If Private is true, a file that users other than its owner can access is not used. There is one exception: the group may
	// read a file of root if this process does not run as root.
	Private bool
	// Use gets each new content, which is JSON in UTF-8. If Use returns an error, the previous content stays in use. The error must
	// not contain secrets from the file.
	Use func(content []byte) error
	// Gone is called after the third consecutive poll that has not found the file. After Gone, Use is called when the file
	// exists again, even if the content is the same as before. If Gone is nil, the last content stays in use. Calls of Use and
	// Gone never overlap.
	Gone func()
	Log  *slog.Logger
}

// File is a file that Run loads again after each change. It is safe for concurrent use.
type File struct {
	o Options

	// mu is held while the file is read and used. Status does not lock mu, so Status never waits.
	mu sync.Mutex
	// info is the metadata of the file at the last read. stable is false if the file's last change was younger than minAge at the
	// last read, because a later change could have the same metadata. stable is also false if the last read failed.
	info   fs.FileInfo
	stable bool
	// digest is the SHA-256 of the last content that was read. result is the error that the check or Use returned for
	// this content. It is nil if the content is in use.
	digest [sha256.Size]byte
	result error
	// missingPolls is the number of consecutive polls that have not found the file.
	missingPolls int
	// lastReported is the text of the last error that was logged or that Reload returned. It is empty if the file has become valid
	// since then.
	lastReported string
	status       atomic.Pointer[Status]
}

// Status is the state of a file.
type Status struct {
	// Since is the time at which the content in use was loaded. It is zero after a call of Options.Gone, until content is loaded
	// again.
	Since time.Time
	// Err is the reason why the present content of the file is not in use, or cannot be read. It is nil if the content is in
	// use.
	Err error
}

// Open reads a file and uses its content. A File need not be closed.
func Open(o Options) (*File, error) {
	f := &File{o: o}
	f.status.Store(&Status{})
	if err := f.Reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Run polls the file until ctx ends, and uses changed content.
func (f *File) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.poll()
		}
	}
}

// Reload reads the file now and uses changed content. Reload stores its error in Status.Err. It does not log the error.
func (f *File) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.load()
	f.setStatus(f.Status().Since, err)
	f.lastReported = ""
	if err != nil {
		f.lastReported = err.Error()
	}
	return err
}

// Status returns the state of the file.
func (f *File) Status() Status { return *f.status.Load() }

func (f *File) setStatus(since time.Time, err error) { f.status.Store(&Status{since, err}) }

// poll reads the file if it seems to have changed, and counts the polls that have not found it.
func (f *File) poll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if f.missingPolls++; f.missingPolls == goneAfter {
			f.handleGone(err)
		}
		return
	}
	f.missingPolls = 0
	if err == nil && f.stable && unchanged(info, f.info) {
		return
	}
	since := f.Status().Since
	f.report(f.load())
	if used := f.Status().Since; !since.IsZero() && !used.Equal(since) {
		f.o.Log.Info("the "+f.o.What+" was reloaded", "path", f.o.Path)
	}
}

// handleGone handles a file that goneAfter consecutive polls have not found.
func (f *File) handleGone(err error) {
	f.stable, f.info = false, nil
	if f.o.Gone != nil {
		f.digest, f.result = [sha256.Size]byte{}, nil
		f.o.Gone()
		f.setStatus(time.Time{}, nil)
		f.lastReported = "" // then report logs err even if Reload has already returned err
	}
	f.report(f.wrap(err))
}

// load reads the file, and uses the content if it differs from the last content. For equal content, load returns the last result.
func (f *File) load() error {
	f.stable = false
	content, info, err := read(f.o.Path, f.o.MaxSize, f.o.Private)
	if err != nil {
		return f.wrap(err)
	}
	f.missingPolls = 0
	f.info, f.stable = info, time.Since(info.ModTime()) > minAge
	digest := sha256.Sum256(content)
	if digest == f.digest {
		return f.result
	}
	f.digest, f.result = digest, check(content)
	if f.result == nil {
		f.result = f.o.Use(content)
	}
	if f.result != nil {
		f.result = f.wrap(f.result)
		return f.result
	}
	f.setStatus(time.Now(), nil)
	return nil
}

func (f *File) wrap(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok { // its text repeats the path
		err = path.Err
	}
	return fmt.Errorf("%s %s: %w", f.o.What, f.o.Path, err)
}

// report sets Status.Err. It logs an error whose text differs from lastReported. If err is nil and lastReported is not empty, it
// logs that the file is valid again.
func (f *File) report(err error) {
	f.setStatus(f.Status().Since, err)
	switch {
	case err == nil && f.lastReported != "":
		f.lastReported = ""
		f.o.Log.Info("the "+f.o.What+" is valid again", "path", f.o.Path)
	case err != nil && err.Error() != f.lastReported:
		f.lastReported = err.Error()
		consequence := "its earlier content stays in use"
		if f.Status().Since.IsZero() {
			consequence = "none of its content is in use"
		}
		f.o.Log.Error("the "+f.o.What+" is invalid; "+consequence, "error", err)
	}
}

// unchanged reports whether a and b describe the same file, with the same time of change, size, mode and owner.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode() && owner(a) == owner(b)
}

// read returns the content of a regular file. It opens the file before it checks the metadata. Otherwise another file could take
// the path after the check.
func read(path string, maxSize int64, private bool) ([]byte, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without O_NONBLOCK, opening a named pipe would block
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("it is not a regular file")
	case private && exposed(info.Mode(), owner(info), os.Geteuid()):
		return nil, nil, fmt.Errorf("its mode %04o lets other users read or write it; it holds secrets: chmod 600", info.Mode().Perm())
	}
	content, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(content)) > maxSize {
		return nil, nil, fmt.Errorf("it is larger than %d bytes", maxSize)
	}
	return content, info, nil
}

// exposed reports whether users other than the owner can access a file. self is the user id of this process. If root owns the
// file and this process does not run as root, the group may read the file. Kubernetes with an fsGroup gives secrets to an
// unprivileged process in this way.
func exposed(mode fs.FileMode, owner, self int) bool {
	if owner == 0 && self != 0 {
		return mode.Perm()&0o037 != 0
	}
	return mode.Perm()&0o077 != 0
}
