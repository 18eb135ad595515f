package api_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/deploy/suites"
	"github.com/sessionstore/compactor/store"
)

// specification has the Open Responses specification's own suite, beside the repository.
const specification = "../../../../shared/openresponses"

// client returns a folder with the files of another one and its packages.
func client(t *testing.T, folder string) string {
	t.Helper()
	packages, dir := suites.Folder(t, folder), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(packages, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// node runs a program in a folder and returns its output.
func node(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	run := exec.CommandContext(t.Context(), "node", args...)
	run.Dir = dir
	var errors strings.Builder
	run.Stderr = &errors
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, errors.String(), out)
	}
	return out
}

// The suite is read from its place; only its packages have to be beside it.
func TestOpenResponsesSuite(t *testing.T) {
	if _, err := os.Stat(specification); err != nil {
		t.Skipf("the suite is not here: %v", err)
	}
	dir := client(t, suiteFiles+"openresponses")
	for _, part := range []string{"bin", "src"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(specification, part))); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(t)
	_, key, err := s.st.Admin.CreateKey(t.Context(), store.NewKey{Name: "suite", Scope: "append", Tenant: "acme", Output: store.OutputItem}, "test")
	if err != nil {
		t.Fatal(err)
	}
	out := node(t, dir, "node_modules/tsx/dist/cli.mjs", "bin/compliance-test.ts", "-u", s.url+"/v1", "-k", key, "-m", "gpt-5.2",
		"-f", "compact-response,compact-missing-model", "--json")
	var got struct {
		Summary struct{ Passed, Failed, Skipped, Total int }
	}
	if err := json.Unmarshal(out, &got); err != nil || got.Summary.Passed != 2 || got.Summary.Total != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAgentsSDKCompactsItsSession(t *testing.T) {
	dir := client(t, suiteFiles+"agents")
	s, model := scripted(t)
	out := node(t, dir, "session.mjs", s.url+"/v1", s.key(t, "append", "acme"))
	var got struct {
		Before, Left int
		Usage        struct{ InputTokens, OutputTokens, TotalTokens int }
		Items, Twice []struct {
			Type, Role string
			Content    []struct{ Type, Text string }
		}
		Error struct {
			Status        int
			Code, Message string
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Before != 60 || len(got.Items) == 0 || len(got.Items) >= 20 || !strings.Contains(string(out), "CONVERSATION SUMMARY") ||
		got.Usage.OutputTokens == 0 || got.Usage.InputTokens <= got.Usage.OutputTokens || model.Paid() == 0 {
		t.Errorf("compacted: %s", out)
	}
	if last := got.Twice[len(got.Twice)-1]; !strings.Contains(last.Content[0].Text, "And now?") {
		t.Errorf("compacted twice: %+v", got.Twice)
	}
	if got.Left != 60 || got.Error.Status != 400 || got.Error.Code == "" || !strings.Contains(got.Error.Message, `compactionMode: "input"`) {
		t.Errorf("refused: %+v, %d items are left", got.Error, got.Left)
	}
}
