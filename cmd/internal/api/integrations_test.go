package api_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// integrations is where the adapters are.
const integrations = "../../../deploy/integrations/"

// tries runs the program of an adapter, which drives the host's own packages, against the server.
func (s *server) tries(t *testing.T, adapter, key string, parts ...string) {
	t.Helper()
	dir, program := client(t, integrations+adapter), "node"
	if own, _ := filepath.Glob(filepath.Join(dir, "node_modules", "node-linux-*", "bin", "node")); len(own) > 0 {
		program = own[0] // a newer one
	}
	run := exec.CommandContext(t.Context(), program, append([]string{"try.mjs"}, parts...)...)
	run.Dir = dir
	run.Env = append(os.Environ(), "COMPACTOR_URL="+s.url, "COMPACTOR_KEY="+key)
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestIntegrationsAgentsSDK(t *testing.T) {
	s := newServer(t).works(t)
	s.tries(t, "openai-agents", s.key(t, "operate", "acme"), "turns", "items", "transactions", "guarded", "compaction", "unreachable")
}

func TestIntegrationsClaudeAgentSDK(t *testing.T) {
	s := newServer(t).works(t)
	s.tries(t, "claude-agent-sdk", s.key(t, "operate", "acme"), "readers", "calls", "imported", "unreachable", "cli")
}

func TestIntegrationsVercelAI(t *testing.T) {
	s := newServer(t).works(t)
	s.tries(t, "vercel-ai", s.key(t, "operate", "acme"), "turns", "compaction", "unreachable")
}

func TestIntegrationsLangChain(t *testing.T) {
	s := newServer(t).works(t)
	s.tries(t, "langchain", s.key(t, "operate", "acme"), "turns", "compaction", "unreachable")
}

// An adapter is one file, which users copy: what several have stands in each.
func TestIntegrationsShareTheirClient(t *testing.T) {
	t.Parallel()
	const mark = "// From here on the same in each adapter that changes prompts.\n"
	files, err := filepath.Glob(integrations + "*/compactor.*")
	if err != nil {
		t.Fatal(err)
	}
	var first string
	found := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, shared, ok := strings.Cut(string(raw), mark)
		if !ok {
			continue
		}
		if found++; found == 1 {
			first = shared
		} else if shared != first {
			t.Errorf("%s has another client than %s", file, files[0])
		}
	}
	if found < 2 {
		t.Errorf("%d files with %q", found, mark)
	}
}

func TestIntegrationsOpencode(t *testing.T) {
	s := newServer(t).works(t)
	s.tries(t, "opencode", s.key(t, "operate", "acme"), "compaction", "unreachable")
}

func TestIntegrationsPi(t *testing.T) {
	s := newServer(t).works(t)
	s.tries(t, "pi", s.key(t, "operate", "acme"), "compaction", "unreachable")
}

// The calls of the page about other hosts, as they stand there.
func TestIntegrationsOverHTTP(t *testing.T) {
	s := newServer(t)
	page, err := os.ReadFile("../../../deploy/docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), "```sh\n")
	script, _, found := strings.Cut(script, "```")
	key := s.key(t, "append", "acme")
	run := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	run.Env = append(os.Environ(), "COMPACTOR_URL="+s.url, "COMPACTOR_KEY="+key)
	out, err := run.CombinedOutput()
	if err != nil || !found || !strings.Contains(string(out), "304\n") {
		t.Errorf("%v\n%s", err, out)
	}
	s.do(t, key, http.MethodGet, at("chat-7", "/view"), nil).
		want(t, 200, `"messages":[{"role":"user","content":"They said hello."},{"role":"user","content":"Hi"}]`)
}
