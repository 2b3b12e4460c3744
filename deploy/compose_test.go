package deploy

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oddsgraph/tests/tool"
)

// composeFile has the fields of the compose files.
type composeFile struct {
	Name     string
	Replica  any `yaml:"x-oddsgraph"`
	Services map[string]composeService
	Volumes  map[string]any
	Networks map[string]struct {
		Internal bool
		IPAM     struct {
			Config []struct {
				Subnet  string
				IPRange string `yaml:"ip_range"`
			}
		}
	}
	Secrets map[string]struct{ File string }
}

type composeService struct {
	Build struct {
		Context string
		Args    map[string]string
	}
	Image, Restart, User string
	Environment          map[string]string
	Ports, Expose        []string
	Command              []string
	Volumes, Secrets     []string
	Networks             any
	Healthcheck          struct{ Disable bool }
	ReadOnly             bool     `yaml:"read_only"`
	CapDrop              []string `yaml:"cap_drop"`
	SecurityOpt          []string `yaml:"security_opt"`
	MemLimit             string   `yaml:"mem_limit"`
	StopGracePeriod      string   `yaml:"stop_grace_period"`
	DependsOn            any      `yaml:"depends_on"`
}

// readCompose reads a compose file. It fails on unknown fields, ports that are open to other machines, images without a version
// (except oddsgraph), undeclared volumes and missing files.
func readCompose(t testing.TB, path string) (c composeFile) {
	t.Helper()
	strict := yaml.NewDecoder(strings.NewReader(read(t, path)))
	strict.KnownFields(true)
	if err := strict.Decode(&c); err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Services {
		for _, p := range s.Ports {
			if host, _, _ := strings.Cut(p, ":"); !net.ParseIP(host).IsLoopback() {
				t.Errorf("the service %s publishes the port %s on an address that is not a loopback address", name, p)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, ".") {
				if _, err := os.Stat(filepath.Join("compose", from)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			} else if _, ok := c.Volumes[from]; !ok {
				t.Errorf("%s: there is no volume %s", name, from)
			}
		}
		if s.Image == "" || strings.HasSuffix(s.Image, ":latest") || s.Image != "oddsgraph" && !strings.Contains(s.Image, ":") {
			t.Errorf("the service %s has the image %q, want an image with a fixed version", name, s.Image)
		}
		if s.Build.Context != "" {
			if _, err := os.Stat(filepath.Join("compose", s.Build.Context, "Dockerfile")); err != nil {
				t.Error(err)
			}
		}
	}
	return c
}

// variables returns the variables of a service: those of the image, and those of the compose file with their defaults.
func (s composeService) variables(t testing.TB) map[string]string {
	t.Helper()
	image := dockerfile(t)
	all := maps.Clone(image[len(image)-1].env)
	for name, value := range s.Environment {
		all[name] = defaults(value)
	}
	return all
}

func TestCompose(t *testing.T) {
	c := readCompose(t, "compose/compose.yaml")
	service := c.Services["oddsgraph"]
	cfg := parse(t, nil, environ(service.variables(t)))
	stop, err := time.ParseDuration(service.StopGracePeriod)
	if err != nil {
		t.Fatal(err)
	}
	wantStopTimeout(t, stop, cfg)
	wantMemory(t, service.Environment["GOMEMLIMIT"], service.MemLimit)
	if dir := imageStateDir(t); cfg.StateDir != dir || !slices.ContainsFunc(service.Volumes, func(v string) bool { return strings.HasSuffix(v, ":"+dir) }) {
		t.Errorf("calls are recorded in %q, want %q, on one of the volumes %q", cfg.StateDir, dir, service.Volumes)
	}
	if len(service.Ports) != 1 || !strings.HasSuffix(service.Ports[0], cfg.Listen) || len(service.Expose) != 1 || ":"+service.Expose[0] != cfg.AdminListen {
		t.Errorf("the service publishes the ports %v and exposes %v; want the ports of its public address %s and of its private address %s", service.Ports, service.Expose, cfg.Listen, cfg.AdminListen)
	}

	var prometheus struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			Classic       bool                         `yaml:"always_scrape_classic_histograms"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	decode(t, "compose/prometheus.yml", &prometheus)
	if got := prometheus.ScrapeConfigs[0].StaticConfigs[0].Targets[0]; got != "oddsgraph"+cfg.AdminListen {
		t.Errorf("Prometheus scrapes %s, want oddsgraph%s", got, cfg.AdminListen)
	}
	if !prometheus.ScrapeConfigs[0].Classic {
		t.Error("Prometheus does not scrape classic histograms, which the alerts use")
	}
	mounted := func(name, path string) bool {
		for _, v := range c.Services[name].Volumes {
			if parts := strings.Split(v, ":"); len(parts) > 1 && parts[1] == path {
				return true
			}
		}
		return false
	}
	for _, f := range append(prometheus.RuleFiles, "/etc/prometheus/prometheus.yml") {
		if !mounted("prometheus", f) {
			t.Errorf("%s is not mounted in the service prometheus", f)
		}
	}
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	decode(t, "compose/grafana/dashboards.yml", &providers)
	if dir := providers.Providers[0].Options.Path; !mounted("grafana", dir+"/oddsgraph.json") || c.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] != dir+"/oddsgraph.json" {
		t.Errorf("oddsgraph.json is not mounted in the folder %s of the service grafana, or is not the home dashboard", dir)
	}
	var sources struct {
		Datasources []struct{ UID, URL string }
	}
	decode(t, "compose/grafana/datasources.yml", &sources)
	if s := sources.Datasources[0]; s.URL != "http://prometheus:9090" {
		t.Errorf("grafana reads from %s, want http://prometheus:9090", s.URL)
	}
}

// defaults returns a value of a compose file, or the default if the value is ${NAME:-default}.
func defaults(value string) string {
	if inner, ok := strings.CutPrefix(value, "${"); ok {
		_, value, _ = strings.Cut(strings.TrimSuffix(inner, "}"), ":-")
	}
	return value
}

// TestPrometheusConfig checks the configuration and rules of Prometheus with promtool.
func TestPrometheusConfig(t *testing.T) {
	promtool := tool.Require(t, "promtool")
	rules, err := filepath.Abs("prometheus")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	config := strings.ReplaceAll(read(t, "compose/prometheus.yml"), "/etc/prometheus", rules)
	// Prometheus 3 introduced this name of the setting. A distribution may have an older promtool, which rejects the name.
	write(t, path, strings.ReplaceAll(config, "    always_scrape_classic_histograms: true\n", ""))
	if out, err := exec.Command(promtool, "check", "config", path).CombinedOutput(); err != nil {
		t.Errorf("promtool check config: %v: %s", err, out)
	}
}
