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
	"syscall"
	"time"
)

const (
	// every is the time between two looks at a file.
	every = 500 * time.Millisecond
	// goneAfter is the number of looks in a row that a file has to be missing to be gone. Some programs replace a file by
	// removing it first.
	goneAfter = 3
	// settled is how old a file's time of change has to be for its metadata to be trusted. Two changes in the same tick of
	// a file system's clock look like one.
	settled = 2 * time.Second
)

// Options say which file is read and what is done with it. Path, MaxSize, Use and Log are required.
type Options struct {
	// What names the file in errors and in the log, such as "accounts file".
	What string
	Path string
	// MaxSize is the greatest size in bytes.
	MaxSize int64
	// Private refuses a file that others than its owner have access to.
	Private bool
	// Use takes over new content, which is JSON in UTF-8. After an error what was in force stays so. Its error must not
	// hold what is secret in the file. Calls never overlap.
	Use func(content []byte) error
	// Gone is called when the file has been missing for a while; nil leaves in force what was. Use is called again when
	// the file is back. Calls to Use and Gone never overlap.
	Gone func()
	Log  *slog.Logger
}

// File is a file whose content is in use. It is safe for concurrent use.
type File struct {
	o Options

	// mu is held while the file is looked at and used; status has a lock of its own, so that it never waits for that.
	mu sync.Mutex
	// examined is the file as it was when it was read last.
	examined fs.FileInfo
	// trusted tells that examined tells any later change.
	trusted bool
	// digest and verdict are the content that Use was called with last, and what it said.
	digest  [sha256.Size]byte
	verdict error
	missing int
	// logged is the error that was told last, in the log or to a caller of Reload.
	logged string

	statusMu sync.Mutex
	status   Status
}

// Status tells how a file stands.
type Status struct {
	// Since is when the content that is in force was taken over; zero after the file was gone.
	Since time.Time
	// Err says why the file's present content is not in force; nil when it is.
	Err error
}

// Open reads a file and uses it. There is nothing to close.
func Open(o Options) (*File, error) {
	f := &File{o: o}
	if err := f.Reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Run looks at the file twice a second until ctx ends, and uses it whenever its content has changed.
func (f *File) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.look()
		}
	}
}

// Reload reads the file now and uses it if its content has changed. The error is that of Status; it is the caller's to
// log.
func (f *File) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.examine()
	f.setError(err)
	f.logged = ""
	if err != nil {
		f.logged = err.Error()
	}
	return err
}

// Status tells whether the file's present content is in force.
func (f *File) Status() Status {
	f.statusMu.Lock()
	defer f.statusMu.Unlock()
	return f.status
}

// look reads the file if it seems to have changed.
func (f *File) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if f.missing++; f.missing == goneAfter {
			f.gone(err)
		}
		return
	}
	f.missing = 0
	if err == nil && f.trusted && unchanged(info, f.examined) {
		return
	}
	f.report(f.examine())
}

// gone takes what was in force out of it, when the owner wants that.
func (f *File) gone(err error) {
	f.trusted, f.examined = false, nil
	if f.o.Gone != nil {
		f.digest, f.verdict = [sha256.Size]byte{}, nil
		f.o.Gone()
		f.setSince(time.Time{})
	}
	f.report(f.wrap(err))
}

// examine reads the file, and uses it if its content is not what was used last.
func (f *File) examine() error {
	f.trusted = false
	content, info, err := read(f.o.Path, f.o.MaxSize, f.o.Private)
	if err != nil {
		return f.wrap(err)
	}
	f.missing = 0
	f.examined, f.trusted = info, time.Since(info.ModTime()) > settled
	digest := sha256.Sum256(content)
	if digest == f.digest {
		return f.verdict
	}
	first := f.digest == [sha256.Size]byte{}
	f.digest, f.verdict = digest, check(content)
	if f.verdict == nil {
		f.verdict = f.o.Use(content)
	}
	if f.verdict != nil {
		f.verdict = f.wrap(f.verdict)
		return f.verdict
	}
	f.setSince(time.Now())
	if !first {
		f.o.Log.Info("the "+f.o.What+" was read again", "path", f.o.Path)
	}
	return nil
}

func (f *File) wrap(err error) error {
	var path *fs.PathError // which names the path too
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s %s: %w", f.o.What, f.o.Path, err)
}

func (f *File) setError(err error) {
	f.statusMu.Lock()
	f.status.Err = err
	f.statusMu.Unlock()
}

func (f *File) setSince(t time.Time) {
	f.statusMu.Lock()
	f.status.Since = t
	f.statusMu.Unlock()
}

// report keeps an error for Status and logs it unless it was logged last.
func (f *File) report(err error) {
	f.setError(err)
	switch {
	case err == nil && f.logged != "":
		f.logged = ""
		f.o.Log.Info("the "+f.o.What+" is in order again", "path", f.o.Path)
	case err != nil && err.Error() != f.logged:
		f.logged = err.Error()
		f.o.Log.Error("the "+f.o.What+" is not in force as it is now", "error", err)
	}
}

// unchanged tells that two looks saw the same file.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode() && owner(a) == owner(b)
}

// read returns a regular file's content. All is asked of the open file, so that it is the one that is read.
func read(path string, maxSize int64, private bool) ([]byte, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer would block
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
		return nil, nil, fmt.Errorf("its mode %04o lets others than its owner at it; it holds secrets: chmod 600", info.Mode().Perm())
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

// exposed tells whether others than the owner have access to a file. The group may read one that belongs to root when
// self is not root: that is how a system, or Kubernetes with an fsGroup, hands a secret to a program without privileges.
func exposed(mode fs.FileMode, owner, self int) bool {
	if owner == 0 && self != 0 {
		return mode.Perm()&0o037 != 0
	}
	return mode.Perm()&0o077 != 0
}
