package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"oddsgraph/bench/probe"
)

// builds builds and starts the measured programs.
type builds struct {
	// dir is the directory of the built programs and their sockets. root is the root directory of the module.
	dir, root string
}

func newBuilds(ctx context.Context, dir string) (*builds, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	return &builds{dir, filepath.Dir(strings.TrimSpace(string(out)))}, nil
}

// oddsgraph builds the program oddsgraph and returns its path. A build overlay adds a file that imports the probe. Apart from
// this file, the program is the same as the shipped one.
func (b *builds) oddsgraph(ctx context.Context) (string, error) {
	source, overlay := filepath.Join(b.dir, "probe.go"), filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(source, []byte("package main\n\nimport _ \"oddsgraph/bench/probe\"\n"), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(b.root, "bench_probe.go"): source}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	return b.build(ctx, "oddsgraph", "-overlay", overlay, ".")
}

func (b *builds) limit(ctx context.Context) (string, error) {
	return b.build(ctx, "limit", "./bench/limit")
}

func (b *builds) broadcast(ctx context.Context) (string, error) {
	return b.build(ctx, "broadcast", "./bench/broadcast")
}

func (b *builds) subscribers(ctx context.Context) (string, error) {
	return b.build(ctx, "subscribers", "./bench/subscribers/run")
}

// errNotGenerated means that the generated code of the plain server is missing.
var errNotGenerated = errors.New("bench/plain/graph is not there: run go generate ./bench/plain first, as make bench does")

func (b *builds) plain(ctx context.Context) (string, error) {
	if _, err := os.Stat(filepath.Join(b.root, "bench", "plain", "graph")); err != nil {
		return "", errNotGenerated
	}
	return b.build(ctx, "plain", "bench/plain/main.go")
}

// build returns the path of a program. It builds the program only once, so that later changes of the source have no effect.
func (b *builds) build(ctx context.Context, name string, args ...string) (string, error) {
	program := filepath.Join(b.dir, name)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-buildvcs=false", "-o", program}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as for the shipped program
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return program, nil
}

// server is a running program that listens on a TCP address.
type server struct {
	name, address string
	// admin is the address of oddsgraph's metrics. It is empty for other programs.
	admin  string
	probe  *http.Client
	cmd    *exec.Cmd
	cancel context.CancelFunc
	ended  chan error
}

func (s *server) url() string { return "http://" + s.address }

// start runs a program and returns when the program listens on a free address. It passes the address to the program with the flag
// named listenFlag. The program ends when ctx ends or the caller calls stop.
func (b *builds) start(ctx context.Context, name, program, listenFlag string, args ...string) (s *server, err error) {
	for range 3 { // another program may take the free port before this program listens on it
		if s, err = b.startOnce(ctx, name, program, listenFlag, args); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func (b *builds) startOnce(ctx context.Context, name, program, listenFlag string, args []string) (*server, error) {
	free, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	s := &server{name: name, address: free[0], ended: make(chan error, 1)}
	if slices.Contains([]string{graphServer, uncachedServer, beforeServer, nowServer}, name) || strings.HasPrefix(name, replicaServer) {
		s.admin = free[1]
		args = append(slices.Clone(args), "--admin-listen="+s.admin)
	}
	socket := filepath.Join(b.dir, name+".sock")
	_ = os.Remove(socket)
	s.probe = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}

	ctx, s.cancel = context.WithCancel(ctx)
	s.cmd = exec.CommandContext(ctx, program, append(args, listenFlag+"="+s.address)...)
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 5 * time.Second
	s.cmd.Env = environment(probe.Variable + "=" + socket)
	var said bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &said, &said
	if _, err := s.cmd.StdinPipe(); err != nil { // the pipe ends with this process, and the probe then ends the program
		s.cancel()
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		s.cancel()
		return nil, err
	}
	go func() { s.ended <- s.cmd.Wait() }()

	dial := time.NewTicker(5 * time.Millisecond)
	defer dial.Stop()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		select {
		case err := <-s.ended:
			s.cancel()
			return nil, fmt.Errorf("%s ended: %w\n%s", name, err, said.Bytes())
		case <-limit.C:
			s.stop()
			return nil, fmt.Errorf("%s does not listen on %s\n%s", name, s.address, said.Bytes())
		case <-dial.C:
			if listening(s.address) && (s.admin == "" || listening(s.admin)) {
				return s, nil
			}
		}
	}
}

// listening reports whether a process accepts connections on an address.
func listening(address string) bool {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// freeAddresses returns n addresses of this host on which no program listens.
func freeAddresses(n int) (out []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out, nil
}

// environment returns the environment variables of the measured programs. All programs have the same GOGC, so that no server may
// leave more garbage on its heap than another. If the environment of bench does not set GOGC, the programs get 400, which suits
// servers with small live heaps.
func environment(more ...string) []string {
	env := append([]string{"GOGC=400"}, more...) // a later variable overrides an earlier variable with the same name
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ODDSGRAPH_") {
			env = append(env, v)
		}
	}
	return env
}

// stop ends the program and waits for it.
func (s *server) stop() {
	s.cancel()
	<-s.ended
	s.probe.CloseIdleConnections()
}

// usage reads the resource usage of the process from the probe.
func (s *server) usage(ctx context.Context) (u probe.Usage, err error) {
	err = s.ask(ctx, "/usage", func(body io.Reader) error { return json.NewDecoder(body).Decode(&u) })
	return u, err
}

// profile gets a profile from the probe and writes it to a file.
func (s *server) profile(ctx context.Context, path, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	err = s.ask(ctx, path, func(body io.Reader) error {
		_, err := io.Copy(f, body)
		return err
	})
	return errors.Join(err, f.Close())
}

func (s *server) ask(ctx context.Context, path string, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://probe"+path, nil)
	if err != nil {
		return err
	}
	resp, err := s.probe.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: probe %s: %s", s.name, path, resp.Status)
	}
	return read(resp.Body)
}

// memory returns the resident memory of the process in bytes, or 0 if the system does not report it.
func (s *server) memory() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
