package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type service struct {
	Image       string
	Build       struct{ Dockerfile string }
	Environment map[string]string
	Ports       []string
	Volumes     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

func TestComposeHangsTogether(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "redis", "migrate", "compactor"} {
		if _, ok := file.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
	for name, s := range file.Services {
		for _, volume := range s.Volumes {
			host, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(host, "./") {
				continue
			}
			if _, err := os.Stat(host); err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			}
		}
		for other := range s.DependsOn {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is no service", name, other)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s to the world", name, port)
			}
		}
	}
	for _, name := range []string{"migrate", "compactor"} {
		s := file.Services[name]
		if s.Environment["DATABASE_URL"] == "" || s.Environment["REDIS_URL"] == "" {
			t.Errorf("%s is not told where its servers are", name)
		}
		if _, err := os.Stat("../" + s.Build.Dockerfile); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRedisKeepsJobs(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	for _, want := range []string{"maxmemory-policy noeviction", "appendonly yes"} {
		if !slices.Contains(lines, want) {
			t.Errorf("redis.conf lacks %q", want)
		}
	}
}

// What an application may call has a row in operating.md, but for what the Go store calls for it.
func TestFunctionsOfApplicationsAreDescribed(t *testing.T) {
	t.Parallel()
	grants, err := os.ReadFile("../migrations/functions/zz_grants.sql")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("operating.md")
	if err != nil {
		t.Fatal(err)
	}
	ofStore := []string{"archived_words", "bound_tenant", "lock_archived", "message_states", "reasoning_tokens", "restore_bodies", "without_reasoning"}
	found := regexp.MustCompile(`\('(\w+)', '\{application`).FindAllStringSubmatch(string(grants), -1)
	if len(found) < 20 {
		t.Errorf("%d functions of applications were found", len(found))
	}
	for _, f := range found {
		if described := regexp.MustCompile("(?m)^\\| .*`" + f[1] + "[(`].* \\|").Match(doc); described == slices.Contains(ofStore, f[1]) {
			t.Errorf("%s: described %t", f[1], described)
		}
	}
}
