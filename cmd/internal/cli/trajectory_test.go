package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/trajectory"
)

// trajectories returns a file with three: one to compress, one within the target, and a
// broken line.
func trajectories(t *testing.T) (path, broken string) {
	t.Helper()
	var turns []trajectory.Turn
	for _, from := range []string{"system", "human", "gpt", "tool", "gpt", "tool", "gpt", "tool", "gpt", "tool", "gpt"} {
		turns = append(turns, trajectory.Turn{From: from, Value: from + " " + strings.Repeat("some text ", 40)})
	}
	line := func(turns []trajectory.Turn) string {
		b, err := json.Marshal(map[string]any{"conversations": turns, "id": 7})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	path = filepath.Join(t.TempDir(), "runs.jsonl")
	broken = `{"conversations": 1}`
	if err := os.WriteFile(path, []byte(line(turns)+"\n"+line(turns[:2])+"\n"+broken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, broken
}

func TestTrajectoryCompress(t *testing.T) {
	t.Parallel()
	in, broken := trajectories(t)
	out, metrics := filepath.Join(t.TempDir(), "out.jsonl"), filepath.Join(t.TempDir(), "metrics.jsonl")
	args := []string{"trajectory", "compress", in, "--target", "700", "--summary-tokens", "60", "--protect-last", "2", "-o", out, "--metrics", metrics}
	r := invoke(t, nil, args...).want(t, exitUsage, "line 3", "want an array of turns", "1 trajectory could not be compressed", "bytes read")
	if !strings.Contains(r.stdout, "compressed         1\n") || strings.Contains(r.stdout, "bytes read") {
		t.Errorf("stdout:\n%s", r.stdout)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(lines) != 3 || lines[2] != broken || strings.Contains(lines[1], trajectory.Prefix) {
		t.Fatalf("got %s", data)
	}
	var first struct {
		Conversations []trajectory.Turn `json:"conversations"`
		ID            int               `json:"id"`
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	c := first.Conversations
	if first.ID != 7 || len(c) >= 11 || c[4].From != trajectory.Human || !strings.HasPrefix(c[4].Value, trajectory.Prefix+" gpt: gpt some text") {
		t.Errorf("got %s", lines[0])
	}
	if data, err = os.ReadFile(metrics); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != 3 || !strings.Contains(string(data), `"was_compressed":true`) || !strings.Contains(string(data), `"line":3`) {
		t.Errorf("metrics:\n%s", data)
	}

	report := decode[trajectoryReport](t, invoke(t, nil, append(args, "--json")...).want(t, exitUsage))
	if report.Trajectories != 3 || report.Compressed != 1 || report.UnderTarget != 1 || report.Failed != 1 || len(report.Failures) != 1 ||
		report.TokensSaved <= 0 || report.File != out {
		t.Errorf("report %+v", report)
	}
}

func TestTrajectoryCompressWritesToStandardOutput(t *testing.T) {
	t.Parallel()
	in, _ := trajectories(t)
	data, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Join(strings.SplitAfter(string(data), "\n")[:2], "")
	r := invokeWith(t, &Env{Stdin: strings.NewReader(whole)}, "trajectory", "compress", "-").want(t, 0)
	if r.stdout != whole || !strings.Contains(r.stderr, "within the target  2\n") {
		t.Errorf("stdout:\n%s\nstderr:\n%s", r.stdout, r.stderr)
	}
	r = invokeWith(t, &Env{Stdin: strings.NewReader(whole)}, "trajectory", "compress", "-", "--target=0", "--model=gpt-4o", "--no-notice").want(t, 0)
	if strings.Contains(r.stdout, "summary, marked") || !strings.Contains(r.stdout, trajectory.Prefix) {
		t.Errorf("stdout:\n%s", r.stdout)
	}
}

func TestTrajectoryCompressRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	in, _ := trajectories(t)
	for name, tt := range map[string]struct {
		args  []string
		parts []string
	}{
		"no file":             {nil, []string{"<file>"}},
		"a file that is none": {[]string{in + ".not"}, []string{"no such file"}},
		"a target":            {[]string{in, "--target", "many"}, []string{`--target: "many"`}},
		"numbers":             {[]string{in, "--workers=0", "--protect-last=-1", "--summary-tokens=-1"}, []string{"--workers", "--protect-last", "--summary-tokens"}},
		"a speaker":           {[]string{in, "--protect-first=nobody"}, []string{"--protect-first"}},
		"a report nowhere":    {[]string{in, "--json"}, []string{"--json", "--out"}},
		"no such folder":      {[]string{in, "--out", filepath.Join(in, "x", "y")}, []string{"--out"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			invoke(t, nil, append([]string{"trajectory", "compress"}, tt.args...)...).want(t, exitUsage, tt.parts...)
		})
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(in), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
