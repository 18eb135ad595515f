package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/strategies/builtin"
)

// TestREADMEShowsTheOutput checks that the lines under the first command of the README are lines of its
// output, in order. A line "…" replaces any number of them, and "…" at the end the rest of a line.
func TestREADMEShowsTheOutput(t *testing.T) {
	t.Parallel()
	const command = "$ go run ./cmd/compactor "
	root := filepath.Join("..", "..", "..")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(readme), "```text\n"+command)
	shown, _, _ = strings.Cut(shown, "```")
	lines := strings.Split(strings.TrimSpace(shown), "\n")
	args := strings.Fields(lines[0])
	if !found || len(args) != 2 || len(lines) < 10 {
		t.Fatalf("no command with its output in the README: %q", lines)
	}
	args[1] = filepath.Join(root, args[1])
	output := strings.Split(invoke(t, []string{"HOME=" + t.TempDir()}, args...).want(t, 0).stdout, "\n")
	anywhere := false
	for _, line := range lines[1:] {
		if line == "…" {
			anywhere = true
			continue
		}
		begin, cut := strings.CutSuffix(line, "…")
		i := slices.IndexFunc(output, func(o string) bool { return o == line || cut && strings.HasPrefix(o, begin) })
		if i < 0 || i > 0 && !anywhere {
			t.Fatalf("the README shows %q, which the output lacks at this place:\n%s", line, strings.Join(output, "\n"))
		}
		output, anywhere = output[i+1:], false
	}
}

// TestSettingsOfPagesAreTaken gives each block of YAML of the pages to the program: as its configuration, or as a policy.
func TestSettingsOfPagesAreTaken(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "deploy", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "settings.yaml")
	env := []string{"HOME=" + t.TempDir(), "OPENAI_API_KEY=key"}
	blocks := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(text), "```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
				t.Fatal(err)
			}
			named := block
			if !strings.HasPrefix(block, "name:") {
				named = "name: x\n" + block
			}
			asPolicy, err := config.ReadPolicy(file, []byte(named), summarizing(builtin.Registry()))
			if r := invoke(t, env, "config", "print", "--config", file); r.code != 0 && (err != nil || asPolicy.Name == "") {
				t.Errorf("%s, block %d: %s%v", filepath.Base(page), i+1, r.stderr, err)
			}
			blocks++
		}
	}
	if blocks < 5 {
		t.Errorf("%d blocks", blocks)
	}
}
