package deploy

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oddsgraph/httpapi"
	"oddsgraph/internal/config"
)

// deployment has the fields of a Deployment that must agree with the program or with other manifests.
type deployment struct {
	Spec struct {
		Replicas        int
		MinReadySeconds int `yaml:"minReadySeconds"`
		Strategy        struct {
			RollingUpdate struct {
				MaxSurge int `yaml:"maxSurge"`
			} `yaml:"rollingUpdate"`
		}
		Template struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				Grace           int `yaml:"terminationGracePeriodSeconds"`
				SecurityContext struct {
					RunAsUser string `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				Containers []struct {
					Env   []struct{ Name, Value string }
					Ports []struct {
						Name          string
						ContainerPort string `yaml:"containerPort"`
					}
					Resources struct{ Limits map[string]string }
				}
			}
		}
	}
}

// documents returns the documents of a YAML text.
func documents[T any](t testing.TB, text string) (all []T) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var document T
		err := d.Decode(&document)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document)
	}
}

// walk calls visit for each value below v, with the key of the map that has the value or its list.
func walk(v any, key string, visit func(key string, v any)) {
	visit(key, v)
	switch v := v.(type) {
	case map[string]any:
		for k, value := range v {
			walk(value, k, visit)
		}
	case []any:
		for _, value := range v {
			walk(value, key, visit)
		}
	}
}

// kubernetesConfig returns the configuration of the files of variables and the variables of the patch of the replicas, if there are
// secrets. An earlier file overrides a later one. secrets is the directory of the secrets that the pod mounts.
func kubernetesConfig(t testing.TB, secrets string, files ...string) *config.Config {
	t.Helper()
	var environ []string
	for _, file := range files {
		environ = append(environ, find(t, read(t, file), `^(\w+=.*)$`)...)
	}
	if secrets != "" {
		patch := documents[deployment](t, read(t, "kubernetes-replicas/deployment.yaml"))[0].Spec
		for _, v := range patch.Template.Spec.Containers[0].Env {
			environ = append(environ, v.Name+"="+strings.ReplaceAll(v.Value, "/run/secrets/oddsgraph", secrets))
		}
	}
	return parse(t, nil, append(environ, imageEnviron(t)...))
}

// TestKubernetes checks that the Deployment fits the program and its configuration.
func TestKubernetes(t *testing.T) {
	cfg := kubernetesConfig(t, "", "kubernetes/oddsgraph.env")
	d := documents[deployment](t, read(t, "kubernetes/deployment.yaml"))[0].Spec
	pod, container := d.Template.Spec, d.Template.Spec.Containers[0]
	wantStopTimeout(t, time.Duration(pod.Grace)*time.Second, cfg)
	wantMemory(t, container.Env[0].Value, container.Resources.Limits["memory"])
	ports := map[string]string{}
	for _, p := range container.Ports {
		ports[p.Name] = ":" + p.ContainerPort
	}
	if want := map[string]string{"http": cfg.Listen, "admin": cfg.AdminListen}; !maps.Equal(ports, want) {
		t.Errorf("the ports are %v, want %v", ports, want)
	}
	if port := d.Template.Metadata.Annotations["prometheus.io/port"]; ":"+port != cfg.AdminListen {
		t.Errorf("metrics are scraped at port %s, want the port of %s", port, cfg.AdminListen)
	}
	if user := find(t, read(t, "../Dockerfile"), `^USER (\d+):\d+$`)[0]; user != pod.SecurityContext.RunAsUser {
		t.Errorf("the image has the user %s, but the pod has %s", user, pod.SecurityContext.RunAsUser)
	}
}

// TestKubernetesReplicas checks that the settings of the replicas fit the Deployment and the settings without Valkey.
func TestKubernetesReplicas(t *testing.T) {
	secrets := makeSecrets(t, "kubernetes-replicas/kustomization.yaml")
	single := kubernetesConfig(t, "", "kubernetes/oddsgraph.env")
	cfg := kubernetesConfig(t, secrets, "kubernetes-replicas/replicas.env", "kubernetes/oddsgraph.env")
	base := documents[deployment](t, read(t, "kubernetes/deployment.yaml"))[0].Spec
	patch := documents[deployment](t, read(t, "kubernetes-replicas/deployment.yaml"))[0].Spec
	// Kubernetes does not count a terminating pod as a replica. So a terminating pod must have ended before the next pod becomes
	// available.
	surge, grace := base.Strategy.RollingUpdate.MaxSurge, base.Template.Spec.Grace
	if cfg.Shared.Replicas < patch.Replicas+2*surge || patch.MinReadySeconds < grace {
		t.Errorf("--shared-replicas is %d for %d replicas, want at least %d more; minReadySeconds is %d, want at least the grace period of %d s",
			cfg.Shared.Replicas, patch.Replicas, 2*surge, patch.MinReadySeconds, grace)
	}
	if n := base.Replicas; cfg.Venue.PublicPerMinute != n*single.Venue.PublicPerMinute || cfg.Venue.KeyPerMinute != n*single.Venue.KeyPerMinute {
		t.Errorf("the replicas share %d public calls and %d calls per key; want the calls of %d replicas without Valkey, which have %d and %d each",
			cfg.Venue.PublicPerMinute, cfg.Venue.KeyPerMinute, n, single.Venue.PublicPerMinute, single.Venue.KeyPerMinute)
	}
	if server := read(t, "kubernetes-replicas/valkey.yaml"); !strings.Contains(cfg.Shared.URL, "@valkey:"+find(t, server, `^    - name: valkey\n      port: (\d+)$`)[0]) {
		t.Error("the replicas use another port than that of the service valkey")
	}
	if read(t, "kubernetes-replicas/valkey.conf") != read(t, "compose/valkey.conf") {
		t.Error("kubernetes-replicas/valkey.conf differs from compose/valkey.conf")
	}
}

// TestManifestsAgree checks that the kustomizations list all manifests, and that the ports, paths and labels that a manifest names
// exist.
func TestManifestsAgree(t *testing.T) {
	files, err := filepath.Glob("kubernetes*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, file := range files {
		dir, name := filepath.Split(file)
		if name != "kustomization.yaml" {
			find(t, read(t, dir+"kustomization.yaml"), `(- |path: )`+name+`$`)
			all = append(all, documents[any](t, read(t, file))...)
		}
	}
	ports, labels := []any{}, []any{}
	walk(all, "", func(key string, v any) {
		m, _ := v.(map[string]any)
		if _, ok := m["containerPort"]; ok {
			ports = append(ports, m["name"])
		}
		if metadata, ok := m["metadata"].(map[string]any); ok && key == "template" {
			labels = append(labels, metadata["labels"])
		}
	})
	walk(all, "", func(key string, v any) {
		m, _ := v.(map[string]any)
		selects := key == "matchLabels" || key == "selector" && m["matchLabels"] == nil
		switch {
		case key == "port" || key == "targetPort":
			if _, number := v.(int); !number && !slices.Contains(ports, v) {
				t.Errorf("a manifest names the port %v, but the containers have %v", v, ports)
			}
		case key == "httpGet" && m["path"] != httpapi.PathHealth && m["path"] != httpapi.PathReady:
			t.Errorf("a probe reads %v, want %s or %s", m["path"], httpapi.PathHealth, httpapi.PathReady)
		case selects && m["kubernetes.io/metadata.name"] == nil:
			if !slices.ContainsFunc(labels, func(l any) bool { return reflect.DeepEqual(l, v) }) {
				t.Errorf("a manifest selects the labels %v, but the pods have %v", v, labels)
			}
		}
	})
}

// TestManifests builds the manifests with kubectl kustomize and decodes them with kubectl, which needs no cluster for this. kubectl
// refuses a field of another type, and drops a field that Deployments do not have.
func TestManifests(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is missing")
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
	if err := os.CopyFS(secrets, os.DirFS(makeSecrets(t, "kubernetes-replicas/kustomization.yaml"))); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	build := exec.Command(kubectl, "kustomize", filepath.Join(dir, "kubernetes-replicas"))
	build.Stderr = &stderr
	built, err := build.Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v: %s", err, stderr.String())
	}
	// This command decodes all manifests before it prints the Deployments and refuses the other kinds.
	decode := exec.Command(kubectl, "set", "env", "--local", "--filename=-", "--output=json", "CHECKED=true")
	decode.Stdin, decode.Stderr = bytes.NewReader(built), &stderr
	out, _ := decode.Output()
	deployments := json.NewDecoder(bytes.NewReader(out))
	for _, want := range documents[map[string]any](t, string(built)) {
		if want["kind"] != "Deployment" {
			continue
		}
		var got any
		if err := deployments.Decode(&got); err != nil {
			t.Fatalf("kubectl cannot decode the manifests: %s", stderr.String())
		}
		wantFields(t, "Deployment", want, got)
	}
}

// wantFields requires got to have all fields of want.
func wantFields(t testing.TB, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		for name, value := range want {
			if _, ok := fields[name]; !ok {
				t.Errorf("Kubernetes does not know the field %s.%s", path, name)
				continue
			}
			wantFields(t, path+"."+name, value, fields[name])
		}
	case []any:
		elements, _ := got.([]any)
		for i, value := range want {
			if i < len(elements) {
				wantFields(t, path, value, elements[i])
			}
		}
	}
}
