package app

import (
	"io"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/config"
)

// TestWarnings checks which settings cause a warning.
func TestWarnings(t *testing.T) {
	const demo, admin = "made-up prices of the demo venue", "without a password"
	for _, test := range []struct {
		args []string
		want string // a part of the only warning, or ""
	}{
		{nil, ""},
		{[]string{"--listen=localhost:8080"}, ""},
		{[]string{"--listen=:8080"}, demo},
		{[]string{"--listen=192.168.0.7:8080"}, demo},
		{[]string{"--listen=0.0.0.0:8080", "--venue-url=https://venue.example"}, ""},
		{[]string{"--admin-listen=off"}, ""},
		{[]string{"--admin-listen=10.1.2.3:9091"}, ""},
		{[]string{"--admin-listen=[::1]:9091"}, ""},
		{[]string{"--admin-listen=0.0.0.0:9091"}, "--admin-listen=0.0.0.0:9091"},
		{[]string{"--admin-listen=:9091"}, admin},
		{[]string{"--admin-listen=203.0.113.7:9091"}, admin},
	} {
		cfg, err := config.Parse(test.args, nil, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(warnings(cfg), func(w string) bool { return strings.Contains(w, "open") }) // depends on the machine
		if len(got) > 1 || (len(got) == 1) != (test.want != "") || len(got) == 1 && !strings.Contains(got[0], test.want) {
			t.Errorf("%v: got the warnings %q, want %q", test.args, got, test.want)
		}
	}
	cfg, err := config.Parse([]string{"--venue-url=https://venue.example"}, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[uint64]string{
		3138: "", 1 << 40: "", 3137: "or set --max-connections=2999", 256: "may open 256 files, too few for --max-connections=3000", 100: "raise it to 3138 (ulimit -n, LimitNOFILE)",
	} {
		if got := strings.Join(fileWarnings(cfg, limit), "\n"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("with %d open files: got %q, want %q", limit, got, want)
		}
	}
}
