package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sessionstore/compactor/worker"
)

type service struct {
	Image       string
	Build       struct{ Dockerfile string }
	Command     []string
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
	for _, name := range []string{"postgres", "redis", "migrate", "key", "compactor"} {
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
	// What a port is published for listens to other machines, and the API does so with a key only, also at the first start.
	served := file.Services["compactor"]
	for setting, port := range map[string]string{"COMPACTOR_API_LISTEN": "8321", "COMPACTOR_METRICS_LISTEN": "9464"} {
		if served.Environment[setting] != "0.0.0.0:"+port || !slices.ContainsFunc(served.Ports, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
			t.Errorf("%s is %q, and the ports are %q", setting, served.Environment[setting], served.Ports)
		}
	}
	for name, other := range map[string]string{"compactor": "key", "key": "migrate"} {
		if file.Services[name].DependsOn[other].Condition != "service_completed_successfully" {
			t.Errorf("%s does not wait for the end of %s", name, other)
		}
	}
	if command := file.Services["key"].Command; !slices.Contains(command, "--if-none") {
		t.Errorf("each start makes a key: %q", command)
	}
	for _, name := range []string{"migrate", "key", "compactor"} {
		s := file.Services[name]
		if s.Environment["DATABASE_URL"] == "" || s.Environment["REDIS_URL"] == "" {
			t.Errorf("%s is not told where its servers are", name)
		}
		if _, err := os.Stat("../" + s.Build.Dockerfile); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What stops a process waits for its end: a scheduler and a worker stop one after the other, and before them the API.
func TestSupervisorsWaitForTheEnd(t *testing.T) {
	t.Parallel()
	least := worker.Default().DrainTimeout + 33*time.Second // 20 for requests, 3 for the scheduler, 7 for what a worker writes, 3 for spans
	for file, pattern := range map[string]string{
		"compose.yaml":               `(?m)^  compactor:\n(?:    .*\n)*    stop_grace_period: (\w+)`,
		"systemd/compactor@.service": `(?m)^TimeoutStopSec=(\d+)$`,
		"kubernetes/base/pod.yaml":   `(?m)^ +terminationGracePeriodSeconds: (\d+)`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Errorf("%s: no time", file)
			continue
		}
		wait, err := time.ParseDuration(found[1])
		if err != nil {
			wait, err = time.ParseDuration(found[1] + "s")
		}
		if err != nil || wait < least {
			t.Errorf("%s: %v, %v, want %v", file, wait, err, least)
		}
	}
}

// A release is made seldom: what it packs must still be there.
func TestAReleaseFindsItsFiles(t *testing.T) {
	t.Parallel()
	var file struct {
		Builds   []struct{ Ldflags []string }
		Archives []struct{ Files []string }
		Nfpms    []struct{ Contents []struct{ Src string } }
		Dockers  []struct{ Dockerfile string } `yaml:"dockers_v2"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../.goreleaser.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	names := []string{file.Dockers[0].Dockerfile}
	names = append(names, file.Archives[0].Files...)
	for _, c := range file.Nfpms[0].Contents {
		names = append(names, c.Src)
	}
	for _, name := range names {
		if found, err := filepath.Glob("../" + name); err != nil || len(found) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	// The same binary from both, but for the way to write the version.
	variable, _, _ := strings.Cut(file.Builds[0].Ldflags[0], "=v{{")
	if !strings.Contains(read(t, "Dockerfile"), variable+"=$VERSION") || !strings.Contains(read(t, "../cmd/internal/cli/version.go"), "var imageVersion string") {
		t.Errorf("%q is not how the image is built", variable)
	}
}

func TestRedisKeepsJobs(t *testing.T) {
	t.Parallel()
	lines := strings.Split(read(t, "redis.conf"), "\n")
	for _, want := range []string{"maxmemory-policy noeviction", "appendonly yes"} {
		if !slices.Contains(lines, want) {
			t.Errorf("redis.conf lacks %q", want)
		}
	}
}

// What an application may call has a row in docs/sql.md, but for what the Go store calls for it.
func TestFunctionsOfApplicationsAreDescribed(t *testing.T) {
	t.Parallel()
	grants, doc := read(t, "../migrations/functions/zz_grants.sql"), read(t, "docs/sql.md")
	ofStore := []string{"archived_words", "attached_view", "bound_tenant", "calls_of", "encode_parts", "encode_steps", "lock_archived", "message_states", "message_text", "messages_among", "messages_page", "restore_bodies", "view_text", "without_reasoning"}
	found := regexp.MustCompile(`\('(\w+)', '\{application`).FindAllStringSubmatch(grants, -1)
	if len(found) < 20 {
		t.Errorf("%d functions of applications were found", len(found))
	}
	for _, f := range found {
		if described := regexp.MustCompile("(?m)^\\| .*`" + f[1] + "[(`].* \\|").MatchString(doc); described == slices.Contains(ofStore, f[1]) {
			t.Errorf("%s: a row in docs/sql.md: %t (functions that only the Go store calls are listed in this test)", f[1], described)
		}
	}
}

// TestPagesAreFound checks that every link between the texts leads to a file and a heading, that the README
// names every page, or a page that does, and that the texts are short.
func TestPagesAreFound(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	anchor := regexp.MustCompile(`[^a-z0-9 _-]`)
	named := read(t, "../README.md")
	for _, m := range regexp.MustCompile(`\]\(deploy/(docs/\w+\.md)\)`).FindAllStringSubmatch(named, -1) {
		named += strings.ReplaceAll(read(t, m[1]), "](", "](deploy/docs/")
	}
	for _, page := range append(pages, "metrics.md", "traces.md", "formats.md", "integrations/README.md", "../README.md") {
		text, limit := read(t, page), 150
		if page == "../README.md" {
			limit = 140
		} else if !strings.Contains(named, "](deploy/"+filepath.ToSlash(page)+")") {
			t.Errorf("the README and the pages that it names do not name %s", page)
		}
		if n := strings.Count(text, "\n"); n > limit {
			t.Errorf("%s has %d lines, more than %d", page, n, limit)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(text, -1) {
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if m[2] == "" {
				continue
			}
			headings := regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(read(t, target), -1)
			if !slices.ContainsFunc(headings, func(h []string) bool {
				return strings.ReplaceAll(anchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == m[2]
			}) {
				t.Errorf("%s: %s has no heading #%s", page, target, m[2])
			}
		}
	}
}
