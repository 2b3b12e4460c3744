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
	// every is the time between two polls.
	every = 500 * time.Millisecond
	// goneAfter is the number of polls in a row that miss a file before it counts as gone. Some programs remove a file before
	// they write the new one.
	goneAfter = 3
	// settled is the age of a file's modification time from which its metadata show every later change. Two changes in the same
	// tick of a file system's clock have the same time.
	settled = 2 * time.Second
)

// Options configure a File. Path, MaxSize, Use and Log are required.
type Options struct {
	// What names the file in errors and in the log, such as "accounts file".
	What string
	Path string
	// MaxSize is the greatest size in bytes.
	MaxSize int64
	// Private rejects a file that users other than its owner can access.
	Private bool
	// Use applies new content, which is JSON in UTF-8. If it fails, the content before stays in use. Its error must not contain
	// secrets of the file. Calls never overlap.
	Use func(content []byte) error
	// Gone is called when three polls in a row have missed the file; if it is nil, the last content stays in use. Use is called
	// again when the file is back. Calls of Use and Gone never overlap.
	Gone func()
	Log  *slog.Logger
}

// File is a file with its content in use. It is safe for concurrent use.
type File struct {
	o Options

	// mu is held while the file is read and used. status has its own lock, so that Status never waits for a read.
	mu sync.Mutex
	// examined is the file's metadata at the last read.
	examined fs.FileInfo
	// trusted reports that a later change will differ from examined.
	trusted bool
	// digest is the hash of the last content, verdict the error that it caused.
	digest  [sha256.Size]byte
	verdict error
	missing int
	// logged is the last error that was logged or returned by Reload.
	logged string

	statusMu sync.Mutex
	status   Status
}

// Status describes the content in use.
type Status struct {
	// Since is when the content came into use; zero after the file was gone.
	Since time.Time
	// Err is the reason why the file's present content is not in use; nil if it is.
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

// Run polls the file twice a second until ctx ends, and uses its content whenever it has changed.
func (f *File) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
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

// Reload reads the file now and uses its content if it has changed. The error is also in Status. The caller logs it.
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

// Status returns the state of the file.
func (f *File) Status() Status {
	f.statusMu.Lock()
	defer f.statusMu.Unlock()
	return f.status
}

// poll reads the file if it seems to have changed.
func (f *File) poll() {
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

// gone ends the use of the last content if there is a Gone.
func (f *File) gone(err error) {
	f.trusted, f.examined = false, nil
	if f.o.Gone != nil {
		f.digest, f.verdict = [sha256.Size]byte{}, nil
		f.o.Gone()
		f.setSince(time.Time{})
	}
	f.report(f.wrap(err))
}

// examine reads the file and uses its content if it differs from the last.
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
	var path *fs.PathError // it names the path, too
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

// report stores an error for Status and logs it if it differs from the last one.
func (f *File) report(err error) {
	f.setError(err)
	switch {
	case err == nil && f.logged != "":
		f.logged = ""
		f.o.Log.Info("the "+f.o.What+" is valid again", "path", f.o.Path)
	case err != nil && err.Error() != f.logged:
		f.logged = err.Error()
		f.o.Log.Error("the "+f.o.What+" is not in use as it is now", "error", err)
	}
}

// unchanged reports whether two polls found the same file.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode() && owner(a) == owner(b)
}

// read returns a regular file's content. It checks the open file, so that no other file can take its place.
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
		return nil, nil, fmt.Errorf("its mode %04o gives other users access to its secrets: chmod 600", info.Mode().Perm())
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

// exposed reports whether users other than the owner can access a file. The group may read a file of root if self is not
// root: systemd, and Kubernetes with an fsGroup, give a secret to an unprivileged program in this way.
func exposed(mode fs.FileMode, owner, self int) bool {
	if owner == 0 && self != 0 {
		return mode.Perm()&0o037 != 0
	}
	return mode.Perm()&0o077 != 0
}
