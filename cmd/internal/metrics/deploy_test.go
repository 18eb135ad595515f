package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// An alert or a panel that names a metric that does not exist would be noticed in an outage only.
func TestAlertsAndDashboardNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	m := New("v1", "abc")
	m.Watch(&fakeStore{}, 1)
	known := map[string][]string{}
	for _, e := range m.Catalog() {
		known[e.Name] = e.Labels
		if e.Type == "histogram" {
			known[e.Name+"_bucket"] = append([]string{"le"}, e.Labels...)
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For string
				Labels           map[string]string
				Annotations      map[string]string
			}
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	read := func(name string, decode func([]byte) error) {
		raw, err := os.ReadFile(filepath.FromSlash("../../../deploy/" + name))
		if err == nil {
			err = decode(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read("prometheus/rules.yaml", func(raw []byte) error { return yaml.Unmarshal(raw, &rules) })
	read("grafana/compactor.json", func(raw []byte) error { return json.Unmarshal(raw, &board) })
	var scaled struct {
		Spec struct {
			Triggers []struct{ Metadata struct{ Query string } }
		}
	}
	read("kubernetes/keda/scaledobject.yaml", func(raw []byte) error { return yaml.Unmarshal(raw, &scaled) })
	checked := 0
	check := func(where, expr, shown string) {
		names := regexp.MustCompile(`compactor_[a-z_]+`).FindAllString(expr, -1)
		labels := map[string]bool{"instance": true, "job": true}
		for _, name := range names {
			checked++
			if _, ok := known[name]; !ok {
				t.Errorf("%s: there is no %s", where, name)
			}
			for _, label := range known[name] {
				labels[label] = true
			}
		}
		for _, used := range regexp.MustCompile(`(\w+)(?:=~|!=|=)"|\b(?:by|ignoring) \(([^)]*)\)|\{\{ ?(?:\$labels\.)?(\w+) ?\}\}`).FindAllStringSubmatch(expr+shown, -1) {
			for label := range strings.SplitSeq(strings.Join(used[1:], ""), ", ") {
				if !labels[label] {
					t.Errorf("%s: %v has no label %q", where, names, label)
				}
			}
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.For == "" || r.Labels["severity"] == "" {
				t.Errorf("%s: has no duration or severity", r.Alert)
			}
			check(r.Alert, r.Expr, r.Annotations["summary"])
		}
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr, target.LegendFormat)
		}
	}
	for _, trigger := range scaled.Spec.Triggers {
		check("the trigger of KEDA", trigger.Metadata.Query, "")
	}
	if checked < 42 || len(scaled.Spec.Triggers) == 0 {
		t.Errorf("only %d names were checked", checked)
	}
}
