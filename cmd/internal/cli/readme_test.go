package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
