package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// namespace is the prefix of all names but those of the Go runtime and the process.
const namespace = "compactor_"

// Entry describes a metric.
type Entry struct {
	Name, Type string
	Labels     []string
	Help       string
}

// Catalog lists the metrics of this package.
func (m *Metrics) Catalog() []Entry { return m.catalog }

// add adds a metric to the catalog and returns its name.
func (m *Metrics) add(kind, name, help string, labels []string) string {
	m.catalog = append(m.catalog, Entry{Name: namespace + name, Type: kind, Labels: labels, Help: help})
	return namespace + name
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.add("counter", name, help, labels), Help: help}, labels)
	m.register.MustRegister(c)
	return c
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.add("gauge", name, help, labels), Help: help}, labels)
	m.register.MustRegister(g)
	return g
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.add("histogram", name, help, labels), Help: help, Buckets: buckets}, labels)
	m.register.MustRegister(h)
	return h
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: m.add("histogram", name, help, nil), Help: help, Buckets: buckets})
	m.register.MustRegister(h)
	return h
}

// desc returns the description of a metric that a collector computes.
func (m *Metrics) desc(kind prometheus.ValueType, name, help string, labels ...string) *prometheus.Desc {
	text := kind.ToDTO().String()
	return prometheus.NewDesc(m.add(strings.ToLower(text), name, help, labels), help, labels, nil)
}
