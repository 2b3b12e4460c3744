package telemetry

import "github.com/prometheus/client_golang/prometheus"

// The kinds of metrics.
const (
	// Counter only grows while the program runs.
	Counter = prometheus.CounterValue
	// Gauge goes up and down.
	Gauge = prometheus.GaugeValue
)

// Family is a metric that is read from a snapshot of type S.
type Family[S any] struct {
	Kind       prometheus.ValueType
	Name, Help string
	Labels     []string // names of the labels
	// Read calls sample once for each series, with the values of the labels.
	Read func(s S, sample func(value float64, labels ...string))
}

// Single returns a Family.Read function for a metric with one series.
func Single[S any](value func(s S) float64) func(S, func(float64, ...string)) {
	return func(s S, sample func(float64, ...string)) { sample(value(s)) }
}

// Register adds metrics. At each scrape, all families are read from one result of snapshot, which must be safe for concurrent use.
// The number of series is not bounded, so Read must report few series. Register panics if a name is already registered.
func Register[S any](m *Metrics, snapshot func() S, families ...Family[S]) {
	c := &snapshotCollector[S]{snapshot: snapshot, families: families}
	for _, f := range families {
		c.descs = append(c.descs, prometheus.NewDesc(f.Name, f.Help, f.Labels, nil))
	}
	m.registerer.MustRegister(c)
}

type snapshotCollector[S any] struct {
	snapshot func() S
	families []Family[S]
	descs    []*prometheus.Desc
}

func (c *snapshotCollector[S]) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		descs <- d
	}
}

func (c *snapshotCollector[S]) Collect(metrics chan<- prometheus.Metric) {
	s := c.snapshot()
	for i, f := range c.families {
		f.Read(s, func(value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(c.descs[i], f.Kind, value, labels...)
		})
	}
}
