package deploy

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"oddsgraph/httpapi"
)

type labels map[string]string

// manifest has the fields that the tests compare. One type serves all kinds of manifests.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Replicas        int
		MinReadySeconds int `yaml:"minReadySeconds"`
		Strategy        struct {
			Type          string
			RollingUpdate struct {
				MaxUnavailable *int `yaml:"maxUnavailable"`
				MaxSurge       int  `yaml:"maxSurge"`
			} `yaml:"rollingUpdate"`
		}
		MaxUnavailable int         `yaml:"maxUnavailable"`
		PodSelector    podSelector `yaml:"podSelector"`
		PolicyTypes    []string    `yaml:"policyTypes"`
		Template       struct {
			Metadata struct {
				Labels, Annotations labels
			}
			Spec pod
		}
		Ports []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Ingress []struct {
			Ports []struct{ Port string }
			From  []struct {
				PodSelector podSelector `yaml:"podSelector"`
			}
		}
	}
}

type podSelector struct {
	MatchLabels labels `yaml:"matchLabels"`
}

type pod struct {
	Grace           int `yaml:"terminationGracePeriodSeconds"`
	SecurityContext struct {
		RunAsUser int `yaml:"runAsUser"`
	} `yaml:"securityContext"`
	Containers []struct {
		Image   string
		Args    []string
		EnvFrom []struct {
			ConfigMapRef struct{ Name string } `yaml:"configMapRef"`
		} `yaml:"envFrom"`
		Env   []struct{ Name, Value string }
		Ports []struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		}
		StartupProbe   probe `yaml:"startupProbe"`
		LivenessProbe  probe `yaml:"livenessProbe"`
		ReadinessProbe probe `yaml:"readinessProbe"`
		Resources      struct{ Limits labels }
		VolumeMounts   []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name     string
		EmptyDir map[string]string `yaml:"emptyDir"`
		Secret   struct {
			SecretName string `yaml:"secretName"`
		}
		ConfigMap struct{ Name string } `yaml:"configMap"`
	}
}

type probe struct {
	Get struct{ Path, Port string } `yaml:"httpGet"`
}

func TestKubernetes(t *testing.T) {
	var all struct {
		Resources          []string
		ConfigMapGenerator []struct {
			Name string
			Envs []string
		} `yaml:"configMapGenerator"`
		Images []struct{ Name string }
	}
	decode(t, "kubernetes/kustomization.yaml", &all)
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests, raw := map[string]manifest{}, map[string]map[string]any{}
	for _, file := range files {
		name := filepath.Base(file)
		if named := slices.Contains(all.Resources, name); named == (name == "kustomization.yaml") {
			t.Errorf("%s is listed in the resources: %v, want %v", name, named, !named)
		}
		var m manifest
		decode(t, file, &m)
		manifests[m.Kind] = m
		var whole map[string]any
		decode(t, file, &whole)
		raw[m.Kind] = whole
	}
	if len(manifests) != len(all.Resources)+1 {
		t.Errorf("the files have %d kinds, want a different kind for each of the resources %v and for the kustomization", len(manifests), all.Resources)
	}
	if len(all.ConfigMapGenerator) != 1 || !slices.Equal(all.ConfigMapGenerator[0].Envs, []string{"oddsgraph.env"}) {
		t.Fatalf("the config maps are %+v, want one from oddsgraph.env", all.ConfigMapGenerator)
	}
	variables := kubernetesVariables(t, "kubernetes/oddsgraph.env")
	cfg := parse(t, nil, environ(variables))

	d := manifests["Deployment"].Spec
	pod := d.Template.Spec
	if u := d.Strategy.RollingUpdate; u.MaxUnavailable == nil || *u.MaxUnavailable != 0 || u.MaxSurge < 1 || d.Replicas < 2 {
		t.Errorf("%d replicas have the rolling update %+v, want at least 2 replicas, maxUnavailable 0 and maxSurge of at least 1", d.Replicas, u)
	}
	wantStopTimeout(t, time.Duration(pod.Grace)*time.Second, cfg)
	if len(pod.Containers) != 1 {
		t.Fatalf("the pod has %d containers, want 1", len(pod.Containers))
	}
	c := pod.Containers[0]
	if len(c.EnvFrom) != 1 || c.EnvFrom[0].ConfigMapRef.Name != all.ConfigMapGenerator[0].Name || len(all.Images) != 1 || c.Image != all.Images[0].Name {
		t.Errorf("the container has the environment %+v and the image %s; want the config map and the image of the kustomization, %+v", c.EnvFrom, c.Image, all.Images)
	}
	if len(c.Env) != 1 || c.Env[0].Name != "GOMEMLIMIT" {
		t.Errorf("the container has the variables %+v, want only GOMEMLIMIT", c.Env)
	} else {
		wantMemory(t, c.Env[0].Value, c.Resources.Limits["memory"])
	}
	if m, v := c.VolumeMounts, pod.Volumes; len(m) != 1 || m[0].MountPath != imageStateDir(t) || len(v) != 1 || v[0].Name != m[0].Name || v[0].EmptyDir == nil {
		t.Errorf("the image records calls in %s; the pod mounts %+v from %+v", imageStateDir(t), m, v)
	}
	ports := map[string]string{}
	for _, p := range c.Ports {
		ports[p.Name] = ":" + strings.TrimSpace(yamlOf(t, p.ContainerPort))
	}
	if want := map[string]string{"http": cfg.Listen, "admin": cfg.AdminListen}; !maps.Equal(ports, want) {
		t.Errorf("the ports are %v, want %v", ports, want)
	}
	if a := d.Template.Metadata.Annotations["prometheus.io/port"]; ":"+a != cfg.AdminListen {
		t.Errorf("metrics are scraped at port %s, want the port of %s", a, cfg.AdminListen)
	}
	for name, probes := range map[string][2]string{
		"startup": {c.StartupProbe.Get.Path, httpapi.PathHealth}, "liveness": {c.LivenessProbe.Get.Path, httpapi.PathHealth},
		"readiness": {c.ReadinessProbe.Get.Path, httpapi.PathReady},
	} {
		if probes[0] != probes[1] {
			t.Errorf("the %s probe asks for %s, want %s", name, probes[0], probes[1])
		}
	}
	for _, p := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if ports[p.Get.Port] != cfg.Listen {
			t.Errorf("a probe uses the port %s, want the port of %s", p.Get.Port, cfg.Listen)
		}
	}
	if user := imageUser(t); user != yamlOf(t, pod.SecurityContext.RunAsUser) {
		t.Errorf("the image has the user %s, but the pod has %d", user, pod.SecurityContext.RunAsUser)
	}

	// Manifests select the pods by labels, and their ports by name.
	own := d.Template.Metadata.Labels
	for kind, path := range map[string]string{
		"Deployment": "spec.selector.matchLabels", "Service": "spec.selector", "PodDisruptionBudget": "spec.selector.matchLabels",
		"NetworkPolicy": "spec.podSelector.matchLabels",
	} {
		selected := lookUp(raw[kind], path)
		if len(selected) != len(own) {
			t.Errorf("%s selects %v, the pods have %v", kind, selected, own)
		}
		for name, value := range selected {
			if own[name] != value {
				t.Errorf("%s selects %s=%v, the pods have %v", kind, name, value, own)
			}
		}
	}
	if s := manifests["Service"].Spec.Ports; len(s) != 1 || ports[s[0].TargetPort] != cfg.Listen {
		t.Errorf("the service forwards to the ports %+v, want the port of %s", s, cfg.Listen)
	}
	for _, rule := range manifests["NetworkPolicy"].Spec.Ingress {
		for _, p := range rule.Ports {
			switch ports[p.Port] {
			case cfg.Listen:
			case cfg.AdminListen:
				if len(rule.From) == 0 {
					t.Error("the network policy lets every pod connect to the private port")
				}
			default:
				t.Errorf("the network policy opens the port %s, on which the program does not listen", p.Port)
			}
		}
	}
	if b := manifests["PodDisruptionBudget"].Spec.MaxUnavailable; b < 1 || b >= d.Replicas {
		t.Errorf("%d of %d replicas may be disrupted, want at least 1 and fewer than all", b, d.Replicas)
	}
}

// lookUp returns the map at a path of names separated by dots, or nil if there is none.
func lookUp(v map[string]any, path string) map[string]any {
	for name := range strings.SplitSeq(path, ".") {
		v, _ = v[name].(map[string]any)
	}
	return v
}

func yamlOf(t testing.TB, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}
