package deploy

import (
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// documents returns the documents of a YAML text by kind and name.
func documents(t testing.TB, text string) map[string]manifest {
	t.Helper()
	all, d := map[string]manifest{}, yaml.NewDecoder(strings.NewReader(text))
	for {
		var m manifest
		err := d.Decode(&m)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[m.Kind+" "+m.Metadata.Name] = m
	}
}

// kubernetesVariables returns the variables of an env file.
func kubernetesVariables(t testing.TB, path string) map[string]string {
	t.Helper()
	variables := map[string]string{}
	for line := range strings.Lines(read(t, path)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			name, value, _ := strings.Cut(line, "=")
			variables[name] = value
		}
	}
	return variables
}

// TestKubernetesReplicas checks that the settings in kubernetes-replicas agree with each other and with the program.
func TestKubernetesReplicas(t *testing.T) {
	base := kubernetesVariables(t, "kubernetes/oddsgraph.env")
	dir := makeSecrets(t)
	variables := maps.Clone(base)
	maps.Copy(variables, kubernetesVariables(t, "kubernetes-replicas/replicas.env"))
	for name, value := range variables {
		if file, ok := strings.CutPrefix(value, "/run/secrets/oddsgraph/"); ok {
			variables[name] = filepath.Join(dir, file)
		}
	}
	cfg, single := parse(t, nil, environ(variables)), parse(t, nil, environ(base))
	var before manifest
	decode(t, "kubernetes/deployment.yaml", &before)
	d := documents(t, read(t, "kubernetes-replicas/deployment.yaml"))["Deployment "+before.Metadata.Name].Spec
	surge := before.Spec.Strategy.RollingUpdate.MaxSurge
	if d.Replicas != 3 || *before.Spec.Strategy.RollingUpdate.MaxUnavailable != 0 || surge != 1 {
		t.Errorf("%d replicas are updated with the strategy %+v, want 3 replicas, maxUnavailable 0 and maxSurge 1", d.Replicas, before.Spec.Strategy)
	}
	// Kubernetes does not count a terminating pod as a replica. So a terminating pod must have ended before the next pod becomes
	// available.
	if grace := before.Spec.Template.Spec.Grace; cfg.Shared.Replicas < d.Replicas+2*surge || d.MinReadySeconds < grace {
		t.Errorf("--shared-replicas is %d for %d replicas, want at least 2 more; minReadySeconds is %d, want at least the grace period of %d s", cfg.Shared.Replicas, d.Replicas, d.MinReadySeconds, grace)
	}
	if n := before.Spec.Replicas; cfg.Venue.PublicPerMinute != n*single.Venue.PublicPerMinute || cfg.Venue.KeyPerMinute != n*single.Venue.KeyPerMinute {
		t.Errorf("the replicas share %d public calls and %d calls per key; want the calls of %d replicas without Valkey, which have %d and %d each",
			cfg.Venue.PublicPerMinute, cfg.Venue.KeyPerMinute, n, single.Venue.PublicPerMinute, single.Venue.KeyPerMinute)
	}
	if cfg.StateDir != "off" || cfg.Shared.SecretFile == "" {
		t.Errorf("the configuration is %v, want a shared secret file and the state directory off", cfg)
	}
	server := documents(t, read(t, "kubernetes-replicas/valkey.yaml"))
	service := server["Service valkey"].Spec
	u, err := url.Parse(cfg.Shared.URL)
	if err != nil || u.Hostname() != "valkey" || len(service.Ports) != 1 || u.Port() != yamlOf(t, service.Ports[0].Port) {
		t.Errorf("the service valkey has the ports %+v, but the replicas use another host or port (error %v)", service.Ports, err)
	}
	wantValkeyPod(t, server)
	if read(t, "kubernetes-replicas/valkey.conf") != read(t, "compose/valkey.conf") {
		t.Error("kubernetes-replicas/valkey.conf differs from compose/valkey.conf")
	}
	var all struct {
		SecretGenerator []struct{ Files []string } `yaml:"secretGenerator"`
	}
	decode(t, "kubernetes-replicas/kustomization.yaml", &all)
	var files []string
	for _, g := range all.SecretGenerator {
		files = append(files, g.Files...)
	}
	made, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range made {
		if !slices.Contains(files, "secrets/"+file.Name()) {
			t.Errorf("the script makes %s, which is not in the list of secrets %v", file.Name(), files)
		}
	}
	if len(files) != len(made) {
		t.Errorf("the list of secrets is %v, but the script makes %v", files, made)
	}
}

// wantValkeyPod requires one Valkey server with the settings of the compose file. Only the replicas may connect to the server.
func wantValkeyPod(t testing.TB, server map[string]manifest) {
	t.Helper()
	compose := readCompose(t, "compose/replicas.yaml").Services["valkey"]
	d, policy := server["Deployment valkey"].Spec, server["NetworkPolicy valkey"].Spec
	if d.Replicas != 1 || d.Strategy.Type != "Recreate" || len(d.Template.Spec.Containers) != 1 {
		t.Fatalf("two Valkey servers can run at the same time: %+v", d)
	}
	c := d.Template.Spec.Containers[0]
	if c.Image != compose.Image || len(c.Args) != 2 || c.Args[0] != compose.Command[0] {
		t.Errorf("Valkey has the image %s and the arguments %v, in compose %s and %v", c.Image, c.Args, compose.Image, compose.Command)
	}
	if size(t, c.Resources.Limits["memory"]) != size(t, compose.MemLimit) {
		t.Errorf("Valkey has the limits %v, in compose the memory limit is %s", c.Resources.Limits, compose.MemLimit)
	}
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		for _, v := range d.Template.Spec.Volumes {
			if v.Name == m.Name {
				mounts[m.MountPath] = v.Secret.SecretName + v.ConfigMap.Name
			}
		}
	}
	if want := map[string]string{filepath.Dir(c.Args[1]): "valkey", "/run/secrets": "valkey"}; !maps.Equal(mounts, want) {
		t.Errorf("Valkey has the mounts %v, want %v", mounts, want)
	}
	own := d.Template.Metadata.Labels
	if !maps.Equal(policy.PodSelector.MatchLabels, own) || !slices.Equal(policy.PolicyTypes, []string{"Ingress", "Egress"}) || len(policy.Ingress) != 1 || len(policy.Ingress[0].From) != 1 {
		t.Fatalf("the network policy does not restrict who may connect to Valkey: %+v", policy)
	}
	var before manifest
	decode(t, "kubernetes/deployment.yaml", &before)
	if from := policy.Ingress[0].From[0].PodSelector.MatchLabels; !maps.Equal(from, before.Spec.Template.Metadata.Labels) {
		t.Errorf("pods with the labels %v may connect to Valkey, want only the replicas", from)
	}
}

// TestKustomize checks the manifests that kubectl kustomize builds.
func TestKustomize(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl, which builds the manifests, is missing")
	}
	dir := t.TempDir()
	for _, name := range []string{"kubernetes", "kubernetes-replicas"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	secrets := filepath.Join(dir, "kubernetes-replicas", "secrets")
	if err := os.RemoveAll(secrets); err != nil { // the copied secrets of this machine, if any
		t.Fatal(err)
	}
	if err := os.CopyFS(secrets, os.DirFS(makeSecrets(t))); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(kubectl, "kustomize", filepath.Join(dir, "kubernetes-replicas")).Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v", err)
	}
	built := documents(t, string(out))
	spec := built["Deployment oddsgraph"].Spec.Template.Spec
	mounts := map[string]string{}
	for _, m := range spec.Containers[0].VolumeMounts {
		mounts[m.MountPath] = m.Name
	}
	if len(spec.Containers) != 1 || mounts["/run/secrets/oddsgraph"] != "shared" || mounts[imageStateDir(t)] != "state" || len(spec.Volumes) != 2 {
		t.Errorf("the pod has the mounts %v and the volumes %+v, want the volumes shared and state", mounts, spec.Volumes)
	}
	settings, secret := "ConfigMap "+spec.Containers[0].EnvFrom[0].ConfigMapRef.Name, ""
	for _, v := range spec.Volumes {
		secret += v.Secret.SecretName
	}
	for _, name := range []string{settings, "Secret " + secret, "PodDisruptionBudget oddsgraph", "Service valkey", "NetworkPolicy valkey"} {
		if _, ok := built[name]; !ok || name == "ConfigMap oddsgraph" || name == "Secret oddsgraph" {
			t.Errorf("there is no %s, or its name has no hash, among %v", name, slices.Sorted(maps.Keys(built)))
		}
	}
}
