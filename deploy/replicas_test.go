package deploy

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oddsgraph/httpapi"
	"oddsgraph/internal/config"
	"oddsgraph/tests/tool"
)

// replicas are the replicas of oddsgraph in compose/replicas.yaml.
var replicas = []string{"oddsgraph-1", "oddsgraph-2", "oddsgraph-3"}

// makeSecrets runs compose/secrets.sh and returns the directory of the secrets.
func makeSecrets(t testing.TB) string {
	t.Helper()
	tool.Require(t, "openssl")
	dir := t.TempDir()
	if out, err := exec.Command("sh", "compose/secrets.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// replicaConfig returns the configuration of a replica. secrets is the directory with the secret files of the replica.
func replicaConfig(t testing.TB, s composeService, secrets string) *config.Config {
	t.Helper()
	variables := s.variables(t)
	for name, value := range variables {
		if file, ok := strings.CutPrefix(value, "/run/secrets/"); ok {
			if !slices.Contains(s.Secrets, file) {
				t.Errorf("%s names %s, the service has the secrets %v", name, value, s.Secrets)
			}
			variables[name] = filepath.Join(secrets, file)
		}
	}
	return parse(t, nil, environ(variables))
}

func TestComposeReplicas(t *testing.T) {
	c := readCompose(t, "compose/replicas.yaml")
	dir := makeSecrets(t)
	built := false
	for _, name := range replicas {
		s, ok := c.Services[name]
		if !ok {
			t.Fatalf("there is no service %s", name)
		}
		cfg := replicaConfig(t, s, dir)
		if stop, err := time.ParseDuration(s.StopGracePeriod); err != nil {
			t.Error(err)
		} else {
			wantPatience(t, stop, cfg)
		}
		wantMemory(t, s.Environment["GOMEMLIMIT"], s.MemLimit)
		if len(s.Ports) > 0 || !slices.Equal(s.Expose, []string{strings.TrimPrefix(cfg.Listen, ":"), strings.TrimPrefix(cfg.AdminListen, ":")}) {
			t.Errorf("%s publishes %v and exposes %v; it listens on %s and %s", name, s.Ports, s.Expose, cfg.Listen, cfg.AdminListen)
		}
		if cfg.Shared.Replicas <= len(replicas) {
			t.Errorf("%d of %d replicas leave no room for one more during an update", len(replicas), cfg.Shared.Replicas)
		}
		if cfg.Venue.URL == "" || cfg.StreamURL == "" || cfg.Shared.SecretFile == "" || cfg.StateDir != "off" {
			t.Errorf("%s is configured with %v", name, cfg)
		}
		if u, err := url.Parse(cfg.Shared.URL); err != nil || u.Hostname() != "valkey" || u.Port() != "6379" || u.User == nil {
			t.Errorf("%s shares at the wrong address: %v", name, err)
		}
		wantBalancer(t, c, cfg)
		built = built || s.Build.Context != ""
	}
	if !built {
		t.Error("no service builds the image")
	}
	for name, s := range c.Services {
		if strings.HasPrefix(name, "oddsgraph") != slices.Contains(replicas, name) {
			t.Errorf("%s is no replica", name)
		}
		for _, secret := range s.Secrets {
			from := c.Secrets[secret].File
			if _, err := os.Stat(filepath.Join(dir, filepath.Base(from))); err != nil || filepath.Dir(from) != "secrets" {
				t.Errorf("%s: the script does not make %s: %v", name, from, err)
			}
		}
	}
	venue := c.Services["venue"]
	if cfg := parse(t, venue.Command, nil); cfg.Command != config.CommandVenue || "http://venue"+cfg.Demo.Listen != defaults(c.Services[replicas[0]].Environment["ODDSGRAPH_VENUE_URL"]) {
		t.Errorf("the venue runs %q", venue.Command)
	}
}

// wantBalancer requires the balancer to list all replicas and to time out later than the replicas. The balancer must be the only
// proxy that the replicas trust.
func wantBalancer(t testing.TB, c composeFile, cfg *config.Config) {
	t.Helper()
	text := read(t, "compose/haproxy.cfg")
	find := func(pattern string) string {
		m := regexp.MustCompile(`(?m)^\s*` + pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("haproxy.cfg has no line %q", pattern)
		}
		return m[1]
	}
	duration := func(pattern string) time.Duration {
		d, err := time.ParseDuration(find(pattern))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var servers []string
	for _, m := range regexp.MustCompile(`(?m)^\s*server (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		if m[2] != m[1]+cfg.Listen {
			t.Errorf("the balancer looks for %s at %s", m[1], m[2])
		}
		servers = append(servers, m[1])
	}
	if !slices.Equal(servers, replicas) {
		t.Errorf("the balancer has the servers %v", servers)
	}
	s := c.Services["balancer"]
	if bind := find(`bind (\S+)`); len(s.Ports) != 1 || !strings.HasSuffix(s.Ports[0], bind) {
		t.Errorf("the balancer listens on %s; published is %v", bind, s.Ports)
	}
	if path := find(`option httpchk GET (\S+)`); path != httpapi.PathReady {
		t.Errorf("health checks ask for %s", path)
	}
	checks, err := strconv.Atoi(find(`default-server check .*\bfall (\d+)`))
	if err != nil {
		t.Fatal(err)
	}
	// checks is the number of failed health checks after which the balancer stops using a replica. In the worst case, a check
	// passes just before the replica begins to stop.
	notice := time.Duration(checks) * duration(`default-server check inter (\S+)`)
	if wait := notice + duration(`timeout check (\S+)`); cfg.DrainDelay < wait {
		t.Errorf("a replica that stops serves for %v; the balancer notices after %v", cfg.DrainDelay, wait)
	}
	for _, side := range []string{"client", "server"} {
		if longest := cfg.RequestTimeout + cfg.QueueTimeout; duration(`timeout `+side+` (\S+)`) <= longest {
			t.Errorf("the balancer cuts off a %s before %v", side, longest)
		}
	}
	connections, err := strconv.Atoi(find(`default-server check .*\bmaxconn (\d+)`))
	if err != nil || connections > cfg.MaxConnections*19/20 {
		t.Errorf("the balancer makes %d of %d connections, and health checks need some", connections, cfg.MaxConnections)
	}
	address, _ := at(map[string]any{"networks": s.Networks}, "networks.clients")["ipv4_address"].(string)
	if !slices.Equal(cfg.TrustedProxies, config.List{address}) {
		t.Errorf("trusted are %q, the balancer is %s", cfg.TrustedProxies, address)
	}
	subnet := c.Networks["clients"].IPAM.Config[0]
	_, all, err := net.ParseCIDR(subnet.Subnet)
	if err != nil {
		t.Fatal(err)
	}
	_, others, err := net.ParseCIDR(subnet.IPRange)
	if err != nil {
		t.Fatal(err)
	}
	if ip := net.ParseIP(address); !all.Contains(ip) || others.Contains(ip) || !all.Contains(others.IP) {
		t.Errorf("the balancer's address %s is not reserved in %+v", address, subnet)
	}
	if !strings.Contains(text, "http-request set-header X-Forwarded-For %[src]\n") {
		t.Error("clients can write their own X-Forwarded-For")
	}
}

// TestComposeValkey checks that the Valkey of replicas.yaml has the settings that docs/scaling.md requires.
func TestComposeValkey(t *testing.T) {
	c := readCompose(t, "compose/replicas.yaml")
	s := c.Services["valkey"]
	if len(s.Ports)+len(s.Expose) > 0 || !c.Networks["shared"].Internal {
		t.Errorf("it is published at %v %v, in the networks %+v", s.Ports, s.Expose, c.Networks)
	}
	for name, other := range c.Services {
		in := strings.Contains(yamlOf(t, other.Networks), "shared")
		if in != (name == "valkey" || slices.Contains(replicas, name)) {
			t.Errorf("%s reaches the network of Valkey: %v", name, in)
		}
	}
	scaling := read(t, "../docs/scaling.md")
	settings := map[string]string{}
	for line := range strings.Lines(read(t, "compose/valkey.conf")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			settings[name] = value
		}
	}
	if memory := settings["maxmemory"]; !strings.Contains(scaling, "`maxmemory "+memory+"`") {
		t.Errorf("maxmemory is %s", memory)
	} else if size(t, s.MemLimit) < 1.5*size(t, strings.TrimSuffix(memory, "b")) {
		t.Errorf("the container has %s for maxmemory %s", s.MemLimit, memory)
	}
	_, policies, _ := strings.Cut(scaling, "- `maxmemory-policy ")
	policies, _, _ = strings.Cut(policies, ".")
	if policy := settings["maxmemory-policy"]; policy != "volatile-lru" || !strings.HasPrefix(policies, policy+"`") {
		t.Errorf("the policy is %s; the documentation says %s", policy, policies)
	}
	if settings["save"] != `""` || settings["appendonly"] != "no" {
		t.Errorf("it stores what may be lost: %v", settings)
	}
	dir := makeSecrets(t)
	acl := read(t, filepath.Join(dir, "valkey.acl"))
	_, rights, _ := strings.Cut(scaling, "`ACL SETUSER oddsgraph on >PASSWORD ")
	rights, _, ok := strings.Cut(rights, "`")
	_, more, okMore := strings.Cut(scaling, "With `--shared-stream` also\n  `")
	more, _, _ = strings.Cut(more, "`")
	if !ok || !okMore || !strings.Contains(acl, "\nuser oddsgraph on #") || !strings.Contains(acl, " "+rights+" "+more+"\n") || !strings.Contains(acl, "user default off\n") {
		t.Errorf("the users are\n%s\nwant the rights %q of docs/scaling.md", acl, rights)
	}
	if settings["aclfile"] != "/run/secrets/valkey.acl" || !slices.Contains(s.Secrets, "valkey.acl") {
		t.Errorf("the users are in %s, the secrets are %v", settings["aclfile"], s.Secrets)
	}
	if out, err := exec.Command("sh", "compose/secrets.sh", dir).CombinedOutput(); err == nil {
		t.Errorf("the script replaces secrets: %s", out)
	}
}

// TestBalancerConfig checks haproxy.cfg with haproxy -c.
func TestBalancerConfig(t *testing.T) {
	if out, err := exec.Command(tool.Require(t, "haproxy"), "-c", "-f", "compose/haproxy.cfg").CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("%v: %s", err, out)
	}
}
