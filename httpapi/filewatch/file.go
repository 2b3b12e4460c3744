package filewatch

import (
	"bytes"
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

const interval = time.Second

// Options say which file to load and how to use it. Path, MaxSize, Use and Log are required.
type Options struct {
	// What names the file in errors and logs, such as "accounts file".
	What string
	Path string
	// MaxSize is the largest size of the file in bytes.
	MaxSize int64
	// If Private is true, a file that its group can write, or that other users can access, is not used.
	Private bool
	// Use gets each new content, which is JSON in UTF-8. If Use returns an error, the previous content stays in use. The error must
	// not contain secrets from the file.
	Use func(content []byte) error
	// Gone is called when a poll does not find the file. After Gone, Use is called when the file exists again, even if the content is
	// the same as before. If Gone is nil, the last content stays in use. Calls of Use and Gone never overlap.
	Gone func()
	Log  *slog.Logger
}

// File is a file that Run loads again after each change. It is safe for concurrent use.
type File struct {
	o Options

	// mu is held while the file is read and used. Status does not lock mu, so Status never waits.
	mu sync.Mutex
	// digest is the SHA-256 of the last content that was read. result is the error that the check or Use returned for
	// this content. It is nil if the content is in use.
	digest [sha256.Size]byte
	result error
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

func (f *File) poll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	since, err := f.Status().Since, f.load()
	if errors.Is(err, fs.ErrNotExist) && f.o.Gone != nil && !since.IsZero() {
		f.digest, f.result = [sha256.Size]byte{}, nil
		f.o.Gone()
		f.setStatus(time.Time{}, nil)
		f.lastReported = "" // then report logs err even if Reload has already returned err
	}
	f.report(err)
	if used := f.Status().Since; !since.IsZero() && used.After(since) {
		f.o.Log.Info("the "+f.o.What+" was reloaded", "path", f.o.Path)
	}
}

// load reads the file, and uses the content if it differs from the last content. For equal content, load returns the last result.
func (f *File) load() error {
	content, err := read(f.o, f.digest[:])
	if err != nil {
		return f.wrap(err)
	}
	if content == nil {
		return f.result
	}
	f.digest, f.result = sha256.Sum256(content), check(content)
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

// read returns the content of a regular file, or nil if the SHA-256 of the content is digest. It opens the file before it checks the
// metadata. Otherwise another file could take the path after the check.
func read(o Options, digest []byte) ([]byte, error) {
	file, err := os.OpenFile(o.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without O_NONBLOCK, opening a named pipe would block
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case o.Private && info.Mode().Perm()&0o037 != 0: // the group may read: Kubernetes and systemd give secrets to an unprivileged process so
		return nil, fmt.Errorf("its mode %04o lets other users read or write it; it holds secrets: chmod 600", info.Mode().Perm())
	}
	present := sha256.New() // takes no memory for the content, which is the same at almost every poll
	if _, err = io.Copy(present, io.LimitReader(file, o.MaxSize+1)); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil || bytes.Equal(present.Sum(nil), digest) {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, o.MaxSize+1))
	if err == nil && int64(len(content)) > o.MaxSize {
		err = fmt.Errorf("it is larger than %d bytes", o.MaxSize)
	}
	return content, err
}
