package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

type process struct {
	// url is the address that clients use. admin is the address of /metrics.
	url, admin string
	profile    string // file for a CPU profile, or ""
	cmd        *exec.Cmd
	cancel     context.CancelFunc
	ended      chan error
}

// addresses matches the line of a program's log that says that the program accepts requests.
var addresses = regexp.MustCompile(`\burl=(http://\S+)(?:.* admin=(http://\S+))?`)

// start starts a program and waits until it accepts requests.
func start(ctx context.Context, program string, args ...string) (*process, error) {
	p := &process{ended: make(chan error, 1)}
	ctx, p.cancel = context.WithCancel(ctx)
	p.cmd = exec.CommandContext(ctx, program, args...)
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 10 * time.Second
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { // such as GOGC
		return strings.HasPrefix(v, "ODDSGRAPH_") || strings.HasPrefix(v, "GO")
	})
	log, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.cancel()
		return nil, err
	}
	defer time.AfterFunc(time.Minute, p.cancel).Stop()
	var said strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if found := addresses.FindStringSubmatch(lines.Text()); found != nil {
			p.url, p.admin = found[1], found[2]
			break
		}
		fmt.Fprintln(&said, lines.Text())
	}
	go func() {
		_, _ = io.Copy(io.Discard, log)
		p.ended <- p.cmd.Wait()
	}()
	if p.url == "" {
		p.cancel()
		return nil, fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), errors.Join(<-p.ended, ctx.Err()), said.String())
	}
	return p, nil
}

func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// usage returns what a process has used since it started, by the unit of an operation, and the present resident memory. It reads the
// processor time first, because the other figures cost about a millisecond.
func (b *bench) usage(ctx context.Context, p *process) (map[*unit]float64, error) {
	cpu, err := cpuTime(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	metrics, err := fetch(ctx, http.MethodGet, p.admin+"/metrics", "")
	if err != nil {
		return nil, err
	}
	calls, err := b.venue.calls(ctx) // of all processes
	return map[*unit]float64{
		cpuPerOp: float64(cpu), allocsPerOp: sample(metrics, "go_memstats_mallocs_total"), bytesPerOp: sample(metrics, "go_memstats_alloc_bytes_total"),
		callsPerOp: calls, hitsPerOp: sample(metrics, `oddsgraph_response_cache_requests_total{verdict="hit"}`), resident: sample(metrics, "process_resident_memory_bytes"),
	}, err
}

// sample returns the value of a sample in the text format of Prometheus, or 0 if there is none. The name includes the labels.
func sample(metrics []byte, name string) (value float64) {
	_, rest, _ := bytes.Cut(metrics, []byte("\n"+name+" "))
	_, _ = fmt.Fscan(bytes.NewReader(rest), &value)
	return value
}

// writeProfile makes a CPU profile for the given duration in whole seconds, if p.profile names a file for it.
func (p *process) writeProfile(ctx context.Context, d time.Duration) error {
	if p.profile == "" {
		return nil
	}
	profile, err := fetch(ctx, http.MethodGet, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", p.admin, max(1, d/time.Second)), "")
	if err != nil {
		return err
	}
	return os.WriteFile(p.profile, profile, 0o644)
}

func fetch(ctx context.Context, method, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	response, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.500s", url, resp.Status, response)
	}
	return response, err
}
