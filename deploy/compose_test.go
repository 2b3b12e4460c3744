package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oddsgraph/internal/config"
	"oddsgraph/tests/tool"
)

// composeFile has the fields of the compose files, so that a field with another name is an error.
type composeFile struct {
	Name              string
	Replica           any `yaml:"x-oddsgraph"`
	Services          map[string]composeService
	Volumes, Networks any
	Secrets           any
}

type composeService struct {
	Image, Restart, User            string
	Environment                     map[string]string
	Ports, Expose, Command, Volumes []string
	Build, Networks, Secrets        any
	Healthcheck                     any
	DependsOn                       any      `yaml:"depends_on"`
	ReadOnly                        bool     `yaml:"read_only"`
	CapDrop                         []string `yaml:"cap_drop"`
	SecurityOpt                     []string `yaml:"security_opt"`
	MemLimit                        string   `yaml:"mem_limit"`
	StopGracePeriod                 string   `yaml:"stop_grace_period"`
}

// readCompose reads a compose file. No service may be open to other machines, and the files that a service mounts must exist,
// because Docker makes an empty directory in place of a missing file.
func readCompose(t testing.TB, path string) (c composeFile) {
	t.Helper()
	strict := yaml.NewDecoder(strings.NewReader(read(t, path)))
	strict.KnownFields(true)
	if err := strict.Decode(&c); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for name, s := range c.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: the port %s is open to other machines", name, p)
			}
		}
		for _, v := range s.Volumes {
			if file, _, _ := strings.Cut(v, ":"); strings.HasPrefix(file, ".") {
				if _, err := os.Stat(filepath.Join("compose", file)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	return c
}

// config returns the configuration of a service of the image oddsgraph. secrets is the directory of its secrets.
func (s composeService) config(t testing.TB, secrets string) *config.Config {
	t.Helper()
	environ := imageEnviron(t)
	for name, value := range s.Environment {
		if inner, ok := strings.CutPrefix(value, "${"); ok { // ${NAME:-default}
			_, value, _ = strings.Cut(strings.TrimSuffix(inner, "}"), ":-")
		}
		environ = append(environ, name+"="+strings.Replace(value, "/run/secrets", secrets, 1))
	}
	return parse(t, s.Command, environ)
}

// wantService requires a service of the image oddsgraph to have enough time and memory, and to expose the ports of its
// configuration.
func wantService(t testing.TB, s composeService, cfg *config.Config) {
	t.Helper()
	wantStopTimeout(t, duration(t, s.StopGracePeriod), cfg)
	wantMemory(t, s.Environment["GOMEMLIMIT"], s.MemLimit)
	if open := fmt.Sprint(s.Ports, s.Expose); !strings.Contains(open, cfg.Listen[1:]) || !strings.Contains(open, cfg.AdminListen[1:]) {
		t.Errorf("the service exposes %s, want the ports of %s and %s", open, cfg.Listen, cfg.AdminListen)
	}
}

func TestCompose(t *testing.T) {
	c := readCompose(t, "compose/compose.yaml")
	service := c.Services["oddsgraph"]
	cfg := service.config(t, "")
	wantService(t, service, cfg)
	prometheus := read(t, "compose/prometheus.yml")
	if target := find(t, prometheus, `targets: \[(.*)\]`)[0]; target != "oddsgraph"+cfg.AdminListen {
		t.Errorf("Prometheus scrapes %s, want oddsgraph%s", target, cfg.AdminListen)
	}
	wanted := append(find(t, prometheus, `- (/etc/prometheus/.*)`), c.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
	for _, path := range wanted {
		if !strings.Contains(fmt.Sprint(c.Services), ":"+path+":ro") {
			t.Errorf("no service mounts %s", path)
		}
	}
}

func TestComposeReplicas(t *testing.T) {
	c := readCompose(t, "compose/replicas.yaml")
	dir := makeSecrets(t, "compose/replicas.yaml")
	balancer := read(t, "compose/haproxy.cfg")
	servers := find(t, balancer, `^\s*server \S+ (\S+)$`)
	// A replica must serve until the balancer notices that the replica stops, at the latest.
	checks, err := strconv.Atoi(find(t, balancer, `default-server check .*\bfall (\d+)`)[0])
	if err != nil {
		t.Fatal(err)
	}
	notice := time.Duration(checks)*duration(t, find(t, balancer, `default-server check inter (\S+)`)[0]) + duration(t, find(t, balancer, `timeout check (\S+)`)[0])
	for _, server := range servers {
		name, port, _ := strings.Cut(server, ":")
		replica := c.Services[name]
		cfg := replica.config(t, dir)
		wantService(t, replica, cfg)
		if ":"+port != cfg.Listen || cfg.DrainDelay < notice {
			t.Errorf("%s listens on %s and drains for %v; the balancer calls port %s and may notice the end of a replica only after %v", name, cfg.Listen, cfg.DrainDelay, port, notice)
		}
		if cfg.Shared.Replicas <= len(servers) {
			t.Errorf("--shared-replicas is %d for %d replicas, want more, because an update may add a replica", cfg.Shared.Replicas, len(servers))
		}
		if !strings.Contains(cfg.Shared.URL, "@valkey:6379") || c.Services["valkey"].Image == "" {
			t.Errorf("%s shares no Valkey", name)
		}
		if address := find(t, read(t, "compose/replicas.yaml"), `ipv4_address: (\S+)`); !slices.Equal(cfg.TrustedProxies, config.List(address)) {
			t.Errorf("%s trusts the proxies %v, want only the balancer %v", name, cfg.TrustedProxies, address)
		}
		if venue := c.Services["venue"].config(t, ""); cfg.Venue.URL != "http://venue"+venue.Demo.Listen {
			t.Errorf("%s calls the venue %s, which listens on %s", name, cfg.Venue.URL, venue.Demo.Listen)
		}
	}
	for name := range c.Services {
		if strings.HasPrefix(name, "oddsgraph-") && !strings.Contains(balancer, "server "+name+" ") {
			t.Errorf("the balancer does not use %s", name)
		}
	}
}

// TestPrometheusConfig checks the configuration and rules of Prometheus with promtool.
func TestPrometheusConfig(t *testing.T) {
	promtool := tool.Require(t, "promtool")
	rules, err := filepath.Abs("prometheus")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	// Prometheus 3 introduced this name of the setting. A distribution may have an older promtool, which rejects the name.
	text := strings.NewReplacer("/etc/prometheus", rules, "    always_scrape_classic_histograms: true\n", "").Replace(read(t, "compose/prometheus.yml"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "config", path).CombinedOutput(); err != nil {
		t.Errorf("promtool check config: %v: %s", err, out)
	}
}

// TestBalancerConfig checks haproxy.cfg with haproxy -c. Tests in tests/fleet run HAProxy and Redis with these files.
func TestBalancerConfig(t *testing.T) {
	if out, err := exec.Command(tool.Require(t, "haproxy"), "-c", "-f", "compose/haproxy.cfg").CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Errorf("haproxy -c: %v: %s", err, out)
	}
}
