package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The planning figures of docs/scaling.md: CPU microseconds of a query, CPU microseconds of a delivery, and kilobytes of a socket.
const (
	plannedQuery    = 100
	plannedDelivery = 25
	plannedSocket   = 40
	// The figures of a delivery and a socket for a subscription to a list of tokens, if many lists share tokens.
	plannedListDelivery = 40
	plannedListSocket   = 50
)

// measured returns the rows of a server in results.md. It reads only the tables with the given column.
func measured(t *testing.T, server, column string) (rows []map[string]string) {
	t.Helper()
	text, err := os.ReadFile("results.md")
	if err != nil {
		t.Fatal(err)
	}
	var header []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			header = nil
		case header == nil:
			header = cells
		default:
			row := map[string]string{}
			for i, name := range header {
				if _, twice := row[name]; !twice && i < len(cells) {
					row[name] = cells[i]
				}
			}
			if _, ok := row[column]; ok && row["server"] == server {
				rows = append(rows, row)
			}
		}
	}
	if len(rows) == 0 {
		t.Fatalf("results.md has no rows of %s with %s", server, column)
	}
	return rows
}

func figure(t *testing.T, row map[string]string, column string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(row[column], 64)
	if err != nil {
		t.Fatalf("%s of %v: %v", column, row, err)
	}
	return n
}

// TestPlanningFigures checks that no measurement in results.md exceeds the planning figures of docs/scaling.md.
func TestPlanningFigures(t *testing.T) {
	for _, row := range measured(t, graphServer, "workload") {
		if got := figure(t, row, "CPU µs"); got > plannedQuery {
			t.Errorf("a query of %s takes %.1f µs, the planning figure is %d µs", row["workload"], got, plannedQuery)
		}
	}
	for _, row := range measured(t, graphServer, "subscribers") {
		number, _, lists := strings.Cut(row["subscribers"], ", lists")
		delivery, socket := plannedDelivery, plannedSocket
		if lists {
			delivery, socket = plannedListDelivery, plannedListSocket
		}
		if got := figure(t, row, "CPU µs"); got > float64(delivery) {
			t.Errorf("a delivery to %s subscribers takes %.1f µs, the planning figure is %d µs", row["subscribers"], got, delivery)
		}
		row["number"] = number
		n := figure(t, row, "number")
		// With fewer sockets, the memory of the program itself is not negligible.
		if n >= 10_000 && 1000*figure(t, row, "RSS MB")/n > float64(socket) {
			t.Errorf("%s sockets take %s MB, the planning figure is %d KB for each socket", row["subscribers"], row["RSS MB"], socket)
		}
	}
}

// TestScalingArithmetic recalculates the tables of docs/scaling.md.
func TestScalingArithmetic(t *testing.T) {
	b, err := os.ReadFile("../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	const (
		clients, tokens, each, size = 1_000_000, 100_000, 4, 200
		deliveries                  = clients * each
		processors                  = deliveries * plannedDelivery / 1_000_000
		replicas                    = processors / 4
		spare                       = (replicas*5 + 3) / 4
		sockets                     = clients / replicas
		connections                 = tokens / 200
	)
	want := []string{
		fmt.Sprintf("| a query that is answered from the cache | %d µs of a processor |", plannedQuery),
		fmt.Sprintf("| the delivery of an event to one subscriber, if many have the same subscription | %d µs of a processor |", plannedDelivery),
		fmt.Sprintf("| the delivery of an event to one subscriber of a list, if many lists share tokens | %d µs of a processor |", plannedListDelivery),
		fmt.Sprintf("| a WebSocket with a subscription to a list | %d KB of memory |", plannedListSocket),
		fmt.Sprintf("| a WebSocket with one subscription | %d KB of memory |", plannedSocket),
		fmt.Sprintf("| deliveries | %s × %d a second | %s a second |", thousands(clients), each, thousands(deliveries)),
		fmt.Sprintf("| processors for deliveries | %s × %d µs | %d |", thousands(deliveries), plannedDelivery, processors),
		fmt.Sprintf("| bytes to clients | %s × %d bytes | %d MB a second, %.1f Gbit/s |", thousands(deliveries), size, deliveries*size/1_000_000, deliveries*size*8/1e9),
		fmt.Sprintf("| memory of sockets | %s × %d KB | %d GB |", thousands(clients), plannedSocket, clients*plannedSocket/1_000_000),
		fmt.Sprintf("| replicas with 8 processors, half used | %d / 4 | %d |", processors, replicas),
		fmt.Sprintf("| sockets of a replica | %s / %d | %s, with %.1f GB |", thousands(clients), replicas, thousands(sockets), sockets*plannedSocket/1e6),
		fmt.Sprintf("| replicas with a quarter to spare | %d × 5 / 4 | %d |", replicas, spare),
		fmt.Sprintf("| connections of one replica to the venue, for all tokens | %s / 200 | %d |", thousands(tokens), connections),
		fmt.Sprintf("| connections of all replicas to the venue | %d × %d | %s |", spare, connections, thousands(spare*connections)),
	}
	for _, n := range []int{4, 5, 10, 15} {
		want = append(want, fmt.Sprintf("| %d | %d | %d |", n, 5*n, 95-5*n))
	}
	for _, row := range want {
		if !strings.Contains(string(b), row+"\n") {
			t.Errorf("docs/scaling.md has no row\n%s", row)
		}
	}
}

// thousands formats a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
