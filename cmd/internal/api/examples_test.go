package api_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/deploy/suites"
)

// The examples append a batch twice, read the view with and without its ETag, and wait for a run.
func TestHTTPExamplesRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("computes for long, in other processes")
	}
	const dir = "../../../deploy/examples"
	for name, c := range map[string]struct {
		program string
		command func(t *testing.T) []string
	}{
		"curl":   {"curl", func(*testing.T) []string { return []string{"bash", dir + "/http/agent.sh"} }},
		"python": {"python3", func(*testing.T) []string { return []string{"python3", dir + "/http/agent.py"} }},
		"go":     {"go", func(*testing.T) []string { return []string{"go", "run", dir + "/http/go"} }},
		"typescript": {"node", func(t *testing.T) []string {
			t.Helper()
			compiler := dir + "/typescript/node_modules/.bin/tsc"
			if _, err := os.Stat(compiler); err != nil {
				suites.Absent(t, "run npm ci --prefix deploy/examples/typescript first")
			}
			out := t.TempDir()
			text, err := exec.CommandContext(t.Context(), compiler, "--outDir", out, "--target", "ES2022", "--module", "ES2022", "--moduleResolution", "bundler", "--strict",
				"--types", "node", "--typeRoots", dir+"/typescript/node_modules/@types", dir+"/http/agent.ts").CombinedOutput()
			if err == nil {
				err = os.Rename(filepath.Join(out, "agent.js"), filepath.Join(out, "agent.mjs"))
			}
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			return []string{"node", filepath.Join(out, "agent.mjs")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skipf("%s is not installed", c.program)
			}
			s := newServer(t).works(t)
			command := c.command(t)
			run := exec.CommandContext(t.Context(), command[0], command[1:]...)
			run.Env = append(os.Environ(), "COMPACTOR_URL="+s.url, "COMPACTOR_KEY="+s.key(t, "operate", "acme"))
			out, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, text := range []string{"On its way.", "unchanged: 304", "run: {"} {
				if !strings.Contains(string(out), text) {
					t.Errorf("no %q in\n%s", text, out)
				}
			}
			failing := exec.CommandContext(t.Context(), command[0], command[1:]...)
			failing.Env = append(os.Environ(), "COMPACTOR_URL="+s.url, "COMPACTOR_KEY="+s.key(t, "append", "acme"))
			if out, err := failing.CombinedOutput(); err == nil || !strings.Contains(string(out), "needs a key of scope operate") {
				t.Errorf("%v with a key that may not compact\n%s", err, out)
			}
			if n := strings.Count(string(out), "seqs"); n != 2 {
				t.Errorf("%d answers to appends\n%s", n, out)
			}
		})
	}
}
