package api_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/deploy/suites"
	"github.com/sessionstore/compactor/strategies/chat"
)

// suiteFiles is where the settings of suites are.
const suiteFiles = "../../../deploy/suites/"

// mcpSuite returns a command that runs a program of a folder.
func mcpSuite(t *testing.T, bin, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1")
	cmd.Dir = t.TempDir()
	return cmd
}

// The cases that concern any server; the others ask for the tools, resources and prompts of the
// server that belongs to the suite.
func TestMCPConformance(t *testing.T) {
	bin := filepath.Join(suites.Folder(t, suiteFiles+"mcp"), ".bin")
	s := newServer(t)
	s.fill(t, "", "chat", said("m1", "hello"))
	expected, err := filepath.Abs(filepath.Join(suiteFiles, "mcp", "expected-failures.yml"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := mcpSuite(t, bin, "conformance", "server", "--url", s.url+"/mcp?session=chat", "--expected-failures", expected).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, passed := range []string{
		"server-initialize: 1", "logging-set-level: 1", "ping: 1", "tools-list: 1",
		"resources-list: 1", "prompts-list: 1", "dns-rebinding-protection: 2",
	} {
		if !strings.Contains(string(out), "✓ "+passed+" passed, 0 failed") {
			t.Errorf("not passed: %s\n%s", passed, out)
		}
	}
}

func TestMCPInspector(t *testing.T) {
	bin := filepath.Join(suites.Folder(t, suiteFiles+"mcp"), ".bin")
	s := newServer(t)
	k := s.fill(t, "acme", "chat", said("m1", "the token is zebra-4711"), said("m2", "more"))
	s.summarized(t, k, chat.Ranges{{Lo: 1, Hi: 2}}, "a summary")
	key := s.key(t, "read", "acme")
	binary := filepath.Join(t.TempDir(), "compactor")
	if given := os.Getenv("TEST_BINARY"); given != "" {
		binary = given
	} else if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../compactor").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, target := range map[string][]string{
		"http":  {s.url + "/mcp?session=chat", "--transport", "http", "--header", "Authorization: Bearer " + key},
		"stdio": {binary, "mcp", "--session=chat", "--tenant=acme", "--database-url=" + s.app.Config.Database.URL.Reveal()},
	} {
		inspect := func(args ...string) string {
			t.Helper()
			cmd := mcpSuite(t, bin, "mcp-inspector", append(append([]string{"--cli"}, target...), args...)...)
			var errors strings.Builder
			cmd.Stderr = &errors
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, errors.String())
			}
			return string(out)
		}
		if out := inspect("--method", "tools/list", "--strict"); strings.Count(out, `"readOnlyHint": true`) != 5 {
			t.Errorf("%s: %s", name, out)
		}
		var result struct {
			StructuredContent struct {
				Hits []struct {
					Seq int `json:"seq"`
				} `json:"hits"`
			} `json:"structuredContent"`
		}
		out := inspect("--method", "tools/call", "--tool-name", "history_search", "--tool-arg", "query=zebra-4711")
		if err := json.Unmarshal([]byte(out), &result); err != nil || len(result.StructuredContent.Hits) != 1 ||
			result.StructuredContent.Hits[0].Seq != 1 {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
