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
				t.Errorf("the variable %s names the file %s, but the service has the secrets %v", name, value, s.Secrets)
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
			wantStopTimeout(t, stop, cfg)
		}
		wantMemory(t, s.Environment["GOMEMLIMIT"], s.MemLimit)
		if len(s.Ports) > 0 || !slices.Equal(s.Expose, []string{strings.TrimPrefix(cfg.Listen, ":"), strings.TrimPrefix(cfg.AdminListen, ":")}) {
			t.Errorf("%s publishes %v and exposes %v; want no published port, and to expose the ports of %s and %s", name, s.Ports, s.Expose, cfg.Listen, cfg.AdminListen)
		}
		if cfg.Shared.Replicas <= len(replicas) {
			t.Errorf("--shared-replicas is %d for %d replicas, want more, because an update may add a replica", cfg.Shared.Replicas, len(replicas))
		}
		if cfg.Venue.URL == "" || cfg.StreamURL == "" || cfg.Shared.SecretFile == "" || cfg.StateDir != "off" {
			t.Errorf("%s has the configuration %v, want a venue with a stream, a shared secret file and the state directory off", name, cfg)
		}
		if u, err := url.Parse(cfg.Shared.URL); err != nil || u.Hostname() != "valkey" || u.Port() != "6379" || u.User == nil {
			t.Errorf("%s does not connect to valkey:6379 with a user (error %v)", name, err)
		}
		wantBalancer(t, c, cfg)
		built = built || s.Build.Context != ""
	}
	if !built {
		t.Error("no service builds the image")
	}
	for name, s := range c.Services {
		if strings.HasPrefix(name, "oddsgraph") != slices.Contains(replicas, name) {
			t.Errorf("the name of the service %s must begin with oddsgraph only if it is one of the replicas %v", name, replicas)
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
		t.Errorf("the service venue runs %q, want the demo venue at the URL that the replicas use", venue.Command)
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
			t.Errorf("the balancer has the address %s for %s, want %s%s", m[2], m[1], m[1], cfg.Listen)
		}
		servers = append(servers, m[1])
	}
	if !slices.Equal(servers, replicas) {
		t.Errorf("the balancer has the servers %v, want %v", servers, replicas)
	}
	s := c.Services["balancer"]
	if bind := find(`bind (\S+)`); len(s.Ports) != 1 || !strings.HasSuffix(s.Ports[0], bind) {
		t.Errorf("the balancer listens on %s, but the published ports are %v", bind, s.Ports)
	}
	if path := find(`option httpchk GET (\S+)`); path != httpapi.PathReady {
		t.Errorf("the health checks of the balancer request %s, want %s", path, httpapi.PathReady)
	}
	checks, err := strconv.Atoi(find(`default-server check .*\bfall (\d+)`))
	if err != nil {
		t.Fatal(err)
	}
	// checks is the number of failed health checks after which the balancer stops using a replica. In the worst case, a check
	// passes just before the replica begins to stop.
	notice := time.Duration(checks) * duration(`default-server check inter (\S+)`)
	if wait := notice + duration(`timeout check (\S+)`); cfg.DrainDelay < wait {
		t.Errorf("a replica that begins to stop still serves for %v, but the balancer may notice only after %v", cfg.DrainDelay, wait)
	}
	for _, side := range []string{"client", "server"} {
		if longest := cfg.RequestTimeout + cfg.QueueTimeout; duration(`timeout `+side+` (\S+)`) <= longest {
			t.Errorf("the balancer's timeout for a %s is not longer than the %v that a request may take", side, longest)
		}
	}
	connections, err := strconv.Atoi(find(`default-server check .*\bmaxconn (\d+)`))
	if err != nil || connections > cfg.MaxConnections*19/20 {
		t.Errorf("the balancer may use %d of a replica's %d connections, want at most 19 of 20, because health checks need some", connections, cfg.MaxConnections)
	}
	address, _ := lookUp(map[string]any{"networks": s.Networks}, "networks.clients")["ipv4_address"].(string)
	if !slices.Equal(cfg.TrustedProxies, config.List{address}) {
		t.Errorf("the replicas trust the proxies %q, want only the balancer %s", cfg.TrustedProxies, address)
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
		t.Errorf("Valkey publishes the ports %v and exposes %v in the networks %+v, want no ports and an internal network", s.Ports, s.Expose, c.Networks)
	}
	for name, other := range c.Services {
		in := strings.Contains(yamlOf(t, other.Networks), "shared")
		if in != (name == "valkey" || slices.Contains(replicas, name)) {
			t.Errorf("the service %s is in the network of Valkey: %v, want %v", name, in, !in)
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
		t.Errorf("maxmemory is %s, which docs/scaling.md does not name", memory)
	} else if size(t, s.MemLimit) < 1.5*size(t, strings.TrimSuffix(memory, "b")) {
		t.Errorf("the container has a memory limit of %s, want at least 1.5 times the maxmemory of %s", s.MemLimit, memory)
	}
	_, policies, _ := strings.Cut(scaling, "- `maxmemory-policy ")
	policies, _, _ = strings.Cut(policies, ".")
	if policy := settings["maxmemory-policy"]; policy != "volatile-lru" || !strings.HasPrefix(policies, policy+"`") {
		t.Errorf("maxmemory-policy is %s, want volatile-lru; docs/scaling.md says %s", policy, policies)
	}
	if settings["save"] != `""` || settings["appendonly"] != "no" {
		t.Errorf("Valkey stores its data on disk, which is not needed: %v", settings)
	}
	dir := makeSecrets(t)
	acl := read(t, filepath.Join(dir, "valkey.acl"))
	_, rights, _ := strings.Cut(scaling, "`ACL SETUSER oddsgraph on >PASSWORD ")
	rights, _, ok := strings.Cut(rights, "`")
	_, more, okMore := strings.Cut(scaling, "With `--shared-stream` also\n  `")
	more, _, _ = strings.Cut(more, "`")
	if !ok || !okMore || !strings.Contains(acl, "\nuser oddsgraph on #") || !strings.Contains(acl, " "+rights+" "+more+"\n") || !strings.Contains(acl, "user default off\n") {
		t.Errorf("the ACL file is\n%s\nwant the rights %q and %q of docs/scaling.md", acl, rights, more)
	}
	if settings["aclfile"] != "/run/secrets/valkey.acl" || !slices.Contains(s.Secrets, "valkey.acl") {
		t.Errorf("the ACL file is %s, want /run/secrets/valkey.acl from the secrets %v", settings["aclfile"], s.Secrets)
	}
	if out, err := exec.Command("sh", "compose/secrets.sh", dir).CombinedOutput(); err == nil {
		t.Errorf("a second run of secrets.sh does not fail, so it may replace the secrets: %s", out)
	}
}

// TestBalancerConfig checks haproxy.cfg with haproxy -c.
func TestBalancerConfig(t *testing.T) {
	if out, err := exec.Command(tool.Require(t, "haproxy"), "-c", "-f", "compose/haproxy.cfg").CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("haproxy -c: %v: %s", err, out)
	}
}
