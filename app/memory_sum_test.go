package app

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"oddsgraph/httpapi"
	"oddsgraph/httpapi/auth"
	"oddsgraph/httpapi/auth/jwt"
	"oddsgraph/httpapi/quota"
	"oddsgraph/internal/config"
	"oddsgraph/resolvers"
)

// consumer is a row of the table in docs/limits.md: the number of objects, and the size of one object in bytes.
type consumer struct {
	name    string
	count   int
	each    float64
	written string // count and size in the format of the table
}

func (c consumer) bytes() float64 { return float64(c.count) * c.each }

// row returns the row in Markdown.
func (c consumer) row() string {
	return fmt.Sprintf("| %s | %s | %.1f MiB |", c.name, c.written, c.bytes()/(1<<20))
}

// unsentBytes is the maximum number of unsent bytes that the kernel holds for a connection: 16 KiB plus one segment of 64 KiB.
const unsentBytes = 80 << 10

// consumers returns the rows for a configuration and a GOMEMLIMIT of limit bytes. tests/e2e/memory_linux_test.go measures the idle
// program, a connection and a subscription. The other rows follow from the configuration and from constants.
func consumers(cfg config.Config, limit float64) []consumer {
	const kib, mib = 1 << 10, 1 << 20
	row := func(name string, bytes float64) consumer { return consumer{name, 1, bytes, "1 | " + size(bytes)} }
	each := func(name string, n int, bytes float64) consumer {
		return consumer{name, n, bytes, thousands(n) + " | " + size(bytes)}
	}
	data, responses := cacheBytes(cfg.Cache, int64(limit))
	return []consumer{
		row("The program at rest", 45*mib),
		row("Responses and events that are executed, or that clients have not read", math.Max(math.Floor(limit/outputShare), leastResponses*float64(cfg.MaxResponse))),
		row("Bodies and messages of clients", math.Max(httpapi.MinIncoming, 4*float64(cfg.MaxBody))),
		each("TCP connections, with the first 16 KiB of a body or response", cfg.MaxConnections, 32*kib),
		each("Subscriptions of all clients", quota.MinTotal, 3*kib),
		each("Executions of different subscriptions", executions(cfg), 16*kib),
		row("Cached data (`--cache-memory`)", float64(data)),
		row("Cached responses (`--cache-responses`)", float64(responses)),
		row("Compiled documents", httpapi.MaxDocumentBytes),
		row("Documents and variables of subscriptions", httpapi.MaxSubscribedBytes),
		row("Automatic persisted queries (`--documents-automatic`)", float64(cfg.Documents.Automatic)),
		row("Orders of lists that clients read page by page", resolvers.MaxListOrderBytes),
		each("Results of checks of tokens and credentials", auth.MaxRefusals, auth.RefusalBytes),
		each("Credentials of clients", httpapi.MaxCredentials, httpapi.CredentialsBytes),
		each("Sessions of JSON Web Tokens", jwt.MaxSessions, jwt.SessionBytes),
		each("Log lines that wait, and that are being written", 2, LogLines),
	}
}

// executions is the number of executions that all clients may have: those of different subscriptions, four thirds of what one client
// may have, and those of split lists.
func executions(cfg config.Config) int { return cfg.Client.Operations/2*4/3 + 2*cfg.StreamTopics }

// size formats bytes in KiB or MiB.
func size(bytes float64) string {
	unit, name := float64(1<<10), " KiB"
	if bytes >= 1<<20 {
		unit, name = 1<<20, " MiB"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", bytes/unit), ".0") + name
}

// thousands formats a number below a million. A number of 1,000 or more gets a comma.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// TestMemorySum compares the rows with the table in docs/limits.md. The row "Sum of the program" must not exceed the GOMEMLIMIT of
// deploy/kubernetes/deployment.yaml. The row "Sum of the container" must not exceed the memory limit of that file.
func TestMemorySum(t *testing.T) {
	deployment, err := os.ReadFile("deploy/kubernetes/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(deployment), "- name: GOMEMLIMIT\n")
	var mib float64
	if _, err := fmt.Sscanf(strings.TrimSpace(after), "value: %fMiB", &mib); err != nil {
		t.Fatalf("GOMEMLIMIT of the deployment: %v", err)
	}
	limit := mib * (1 << 20)
	text, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Memory\n")
	section, _, _ = strings.Cut(section, "\n## ")
	want, sum := []string{"| What | How many | Each | Together |", "|---|---|---|---|"}, 0.
	for _, c := range consumers(config.Default(), limit) {
		want, sum = append(want, c.row()), sum+c.bytes()
	}
	connections := config.Default().MaxConnections
	kernel := consumer{"Unsent bytes in the kernel", connections, unsentBytes, thousands(connections) + " | " + size(unsentBytes)}
	total := sum + kernel.bytes()
	want = append(want, fmt.Sprintf("| Sum of the program | | | %.1f MiB |", sum/(1<<20)), kernel.row(),
		fmt.Sprintf("| Sum of the container | | | %.1f MiB |", total/(1<<20)))
	var got []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the table of docs/limits.md is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if sum > limit {
		t.Errorf("the program can use %.1f MiB, its GOMEMLIMIT is %.0f MiB", sum/(1<<20), mib)
	}
	_, after, _ = strings.Cut(string(deployment), "limits:\n")
	_, after, _ = strings.Cut(after, "memory: ")
	if _, err := fmt.Sscanf(after, "%fMi", &mib); err != nil || total > mib*(1<<20) {
		t.Errorf("the container can use %.1f MiB, its memory limit is %.0f MiB (error %v)", total/(1<<20), mib, err)
	}
}
