package main

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// cacheFlag is the flag that sets the memory of the response cache.
const cacheFlag = "--cache-responses"

// withoutResponseCache returns the flags that disable the response cache of a program. It returns no flags if the program has no
// response cache.
func withoutResponseCache(ctx context.Context, program string) ([]string, error) {
	return supportedFlags(ctx, program, []string{cacheFlag + "=0"})
}

// supportedFlags returns those of the flags that a program has. An earlier revision may lack some of the flags.
func supportedFlags(ctx context.Context, program string, flags []string) ([]string, error) {
	help, err := exec.CommandContext(ctx, program, "--help").Output()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool {
		name, _, _ := strings.Cut(flag, "=")
		return !bytes.Contains(help, []byte(name+"="))
	}), nil
}

// counters maps the name and labels of a metric to its value. It is nil if the server publishes no metrics.
type counters map[string]float64

// The metrics that become columns of the table.
const (
	metricOperations = "oddsgraph_operations_total"
	metricResponses  = "oddsgraph_response_cache_requests_total"
)

// counters reads the metrics of the server.
func (s *server) counters(ctx context.Context) (counters, error) {
	if s.admin == "" {
		return nil, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil
	}
	return readCounters(bufio.NewScanner(resp.Body))
}

// readCounters reads the text format of Prometheus.
func readCounters(lines *bufio.Scanner) (counters, error) {
	c := counters{}
	for lines.Scan() {
		line := lines.Text()
		name, value, ok := cutLast(line)
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			c[name] = f
		}
	}
	return c, lines.Err()
}

func cutLast(line string) (name, value string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// sum adds up the samples of a metric that have all of the labels.
func (c counters) sum(metric string, labels ...string) (n float64) {
	for name, value := range c {
		rest, ok := strings.CutPrefix(name, metric)
		if ok && (rest == "" || rest[0] == '{') && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			n += value
		}
	}
	return n
}

// hitShare returns the fraction of the requests that the response cache answered between two readings of the metrics. The parameter
// before is the first reading, and c is the second. hitShare returns 0 if there were no such requests or the server has no metrics
// of a response cache.
func (c counters) hitShare(before counters) float64 {
	all := c.sum(metricResponses) - before.sum(metricResponses)
	if all == 0 {
		return 0
	}
	const hit = `verdict="hit"`
	return (c.sum(metricResponses, hit) - before.sum(metricResponses, hit)) / all
}

// executedOperations returns the number of operations that the server executed between the two readings. With a response cache, the
// server executes only the misses. executedOperations returns 0 if the server has no metrics.
func (c counters) executedOperations(before counters) float64 {
	if c.sum(metricResponses) > before.sum(metricResponses) {
		const miss = `verdict="miss"`
		return c.sum(metricResponses, miss) - before.sum(metricResponses, miss)
	}
	return c.sum(metricOperations) - before.sum(metricOperations)
}
