package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
)

const talkFile = `{"session_id":"s1","model":"gpt-4o","user":"ada","messages":[
{"role":"system","content":"be good"},
{"id":"u1","role":"user","content":"look at the file"},
{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"a","content":"forty-two, and more words than anybody needs to say that"},
{"role":"assistant","content":"It says 42."},
{"id":"u2","role":"user","content":"and the other?"},
{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"b","content":"7"},
{"role":"assistant","content":"That says 7."}]}`

// talkIn returns a folder with the file in it.
func talkIn(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "talk.json")
	if err := os.WriteFile(path, []byte(talkFile), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

func TestCompactFileIsGolden(t *testing.T) {
	t.Parallel()
	dir, path := talkIn(t)
	home := []string{"HOME=" + dir}
	args := []string{"compact-file", path, "--strategy=tool_result", "--strategy=sliding_window:keep_last_groups=5"}
	golden(t, "compact_file", invoke(t, home, args...).want(t, 0).stdout)
	golden(t, "compact_file_explain", invoke(t, home, append(args, "--explain")...).want(t, 0).stdout)
	golden(t, "compact_file_json", invoke(t, home, append(args, "--json")...).want(t, 0).stdout)
	golden(t, "help_compact_file", invoke(t, nil, "compact-file", "--help").want(t, 0).stdout)
}

func TestCompactFileWritesTheView(t *testing.T) {
	t.Parallel()
	dir, path := talkIn(t)
	out := filepath.Join(dir, "short.jsonl")
	r := invoke(t, []string{"HOME=" + dir}, "compact-file", path, "--out", out, "--strategy=tool_result:keep_last_tool_call_groups=0").want(t, 0, "tool_result", "9 → 7")
	if strings.Contains(r.stdout, "be good") {
		t.Errorf("the view is shown, too:\n%s", r.stdout)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	s, err := chat.NewReader(f).Next()
	if err != nil || s.ID != "s1" || s.Model != "gpt-4o" || string(s.Extra["user"]) != `"ada"` || len(s.Messages) != 7 {
		t.Fatalf("%v, %+v", err, s)
	}
	if got := s.Messages[2].Content.Text; !strings.HasPrefix(got, "[Tool results: read: forty-two") {
		t.Errorf("message 3 is %q", got)
	}
	invoke(t, nil, "compact-file", path, "--strategy=magic", "--out", filepath.Join(dir, "none")).want(t, exitUsage, "unknown strategy")
	names, err := filepath.Glob(filepath.Join(dir, "*none*"))
	if hidden, _ := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(names)+len(hidden) > 0 {
		t.Errorf("left behind: %v %v %v", names, hidden, err)
	}
}

func TestCompactFileReadsAndWritesOtherFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	talk := `{"id":"t1","conversations":[{"from":"system","value":"be good"},{"from":"human","value":"one"},{"from":"gpt","value":"two"},{"from":"human","value":"three"}]}`
	if err := os.WriteFile(in, []byte(talk+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := []string{"HOME=" + dir}
	args := []string{"compact-file", in, "--strategy=sliding_window:keep_last_groups=1", "--out", out}
	invoke(t, home, append(args, "--to=sharegpt")...).want(t, 0, "4 → 2")
	raw, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(raw), `"from":"human"`) || strings.Contains(string(raw), `"one"`) {
		t.Errorf("%s, %v", raw, err)
	}
	invoke(t, home, append(args, "--format=magic")...).want(t, exitUsage, "--format", "magic", "sharegpt")
	invoke(t, home, append(args, "--to=magic")...).want(t, exitUsage, "--to", "magic", "sharegpt")
}

func TestCompactFileByPolicy(t *testing.T) {
	t.Parallel()
	dir, path := talkIn(t)
	home := []string{"HOME=" + dir}
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte("policy: {preset: tool_heavy, start_tokens: 60, target_tokens: 50, min_gain_tokens: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, "long.jsonl")
	if err := os.WriteFile(long, []byte(strings.ReplaceAll(conversation("long", 20), "gpt-4", "gpt-4o")), 0o600); err != nil {
		t.Fatal(err)
	}
	invoke(t, home, "compact-file", long).want(t, 0, "within the policy's target of ", " tokens: compacted to a third of it, ", "(--target sets another)")
	invoke(t, home, "compact-file", path).want(t, 0, "nothing to do: the view is within the target of 64,000 tokens")
	invoke(t, home, "compact-file", path, "--target=10").want(t, 0, "above the target of 10 tokens: what must stay")
	invoke(t, home, "compact-file", path, "--target=60").want(t, 0, "EXCLUDED BY")
	invoke(t, home, "compact-file", path, "--start=200", "--target=150").want(t, 0, "nothing to do: the view is within the target of 150 tokens")
	invoke(t, home, "compact-file", path, "--start=60").want(t, 0, "EXCLUDED BY")
	invoke(t, home, "compact-file", path, "--policy", "chat", "--start=60", "--target=50", "--policy-min-gain-tokens=1").want(t, 0, "preserve_recent_turns")
	invoke(t, home, "compact-file", path, "--policy", file, "--explain").want(t, 0, "prune_tool_results", "handoff", "target 50 tokens", "token_budget_fallback")
	invoke(t, home, "compact-file", long, "--policy=research").want(t, 0, "within the policy's target")
	invoke(t, home, "compact-file", path, "--policy=strict", "--explain").want(t, 0, "extractive", "without a model")
	invoke(t, home, "compact-file", long, "--policy=configured").want(t, 0, "within the policy's target")
	got := decode[struct{ Sessions []fileJSON }](t, invoke(t, home, "compact-file", long, "--json").want(t, 0)).Sessions[0]
	if !got.TargetChosen || int64(got.Target) != got.Before.Tokens/3 {
		t.Errorf("the target of %d tokens is %d", got.Before.Tokens, got.Target)
	}
	invoke(t, home, "compact-file", path, "--policy=nope").want(t, exitUsage, "nope", "configured, chat, coding, research, strict, support, tool_heavy")
	invoke(t, home, "compact-file", path, "--policy=chat", "--strategy=tool_result").want(t, exitUsage, "--policy", "--strategy")
	invoke(t, nil, "config", "print", "--policy-preset=chat").want(t, 0, "policy.preset", "chat", "preserve_recent_turns")
}

func TestCompactFilePinsAndReadsStandardInput(t *testing.T) {
	t.Parallel()
	e := &Env{Stdin: strings.NewReader(talkFile + "\n" + strings.ReplaceAll(talkFile, "s1", "s2")), Environ: []string{"HOME=" + t.TempDir()}}
	r := invokeWith(t, e, "compact-file", "-", "--json", "--strategy=sliding_window:keep_last_groups=1", "--pin=u1", "--pin=nobody").want(t, 0, "--pin nobody: no message")
	got := decode[struct{ Sessions []fileJSON }](t, r)
	var lines []string
	for _, s := range got.Sessions {
		line := s.Session
		for _, m := range s.View {
			line += " " + string(m.Role)
		}
		lines = append(lines, line)
	}
	want := []string{"s1 system user user assistant", "s2 system user user assistant"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	for name, in := range map[string]string{"nothing": "", "no session": "{", "a line that is none": `{"role":"user","content":"x"}` + "\nnonsense\n"} {
		r := invokeWith(t, &Env{Stdin: strings.NewReader(in)}, "compact-file", "-", "--strict")
		if r.code != exitUsage || r.stderr == "" {
			t.Errorf("%s: exit code %d, %s", name, r.code, r.stderr)
		}
	}
}

func TestCompactFileExplainsThePolicy(t *testing.T) {
	t.Parallel()
	dir, path := talkIn(t)
	home := []string{"HOME=" + dir}
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte("policy: {pipeline: [{strategy: clamp}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := invoke(t, home, "--config", file, "compact-file", path, "--policy=tool_heavy", "--explain").want(t, 0, "step 1 prune_tool_results")
	if strings.Contains(r.stdout, "clamp") {
		t.Errorf("the file's pipeline goes before the preset that was asked for:\n%s", r.stdout)
	}
	drop := []string{"compact-file", path, "--strategy=selective_tool_call:keep_last_tool_call_groups=0"}
	invoke(t, home, drop...).want(t, 0, "tool_call_compaction")
	invoke(t, home, append(drop, "--policy-pin-tools=[read]")...).want(t, 0, "nothing to compact")
}

func TestCompactFileNamesAllFaultsBeforeItReads(t *testing.T) {
	t.Parallel()
	r := invoke(t, nil, "compact-file", "/nowhere/at/all", "--strategy=handoff:nope=1", "--strategy=clamp:head=2,foo=1").want(t, exitUsage, "handoff", "nope")
	for line := range strings.SplitSeq(strings.TrimSpace(r.stderr), "\n") {
		if !strings.HasPrefix(line, "compactor: --strategy: ") {
			t.Errorf("%q", line)
		}
	}
	if n := strings.Count(r.stderr, "\n"); n != 3 {
		t.Errorf("%d faults:\n%s", n, r.stderr)
	}
	invoke(t, nil, "compact-file", "x", "--to=codex").want(t, exitUsage, "--to: requires --out")
}

func TestCompactFileInventsNoID(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	e := &Env{Stdin: strings.NewReader(`{"messages":[{"role":"user","content":"x"}]}`), Environ: []string{"HOME=" + t.TempDir()}}
	invokeWith(t, e, "compact-file", "-", "--output", out).want(t, 0, "session 1")
	raw, err := os.ReadFile(out)
	if err != nil || strings.Contains(string(raw), "session 1") {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestOutputsThatAreNoFilesAreWrittenTo(t *testing.T) {
	t.Parallel()
	_, finish, err := createFile("--out", os.DevNull, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if finish(&failed); failed.Error() != "failed" {
		t.Error(failed)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s is gone: %v, %v", os.DevNull, info, err)
	}
	if _, _, err := createFile("--out", "-", nil); err == nil {
		t.Error("- is a file")
	}
}

// A command replaces no file that it reads or writes besides, by whatever name, and none that is read-only.
func TestOutputsReplaceNoInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, link, locked := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "link.jsonl"), filepath.Join(dir, "locked.csv")
	const session = `{"messages":[{"role":"user","content":"Count the lamps of the hall."},{"role":"assistant","content":"Four."}]}` + "\n"
	if err := errors.Join(os.WriteFile(in, []byte(session), 0o600), os.Symlink(in, link), os.WriteFile(locked, []byte("kept"), 0o400)); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(dir, "report")
	for _, args := range [][]string{
		{"compact-file", in, "--out", in},
		{"compact-file", in, "--out", link},
		{"eval", "--from", in, "--csv", link},
		{"eval", in, "--csv", in},
		{"eval", "--from", in, "--html", in},
		{"eval", "--from", in, "--csv", report, "--html", report},
		{"eval", "--from", in, "--state", report, "--html", report},
		{"eval", "--from", in, "--csv", locked},
		{"trajectory", "compress", in, "--out", in},
		{"trajectory", "compress", in, "--out", report, "--metrics", report},
	} {
		invoke(t, []string{"HOME=" + dir}, args...).want(t, exitUsage, args[len(args)-1])
	}
	for name, want := range map[string]string{in: session, locked: "kept"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestStandardInputIsInterruptible(t *testing.T) {
	t.Parallel()
	in, w := io.Pipe()
	defer w.Close() //nolint:errcheck // the reader has ended
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.WriteString(w, `{"messages":[`)
		cancel()
	}()
	e := &Env{Stdin: in, Out: discard(), Err: discard(), Environ: []string{"HOME=" + t.TempDir()}, Registry: builtin.Registry(), now: time.Now}
	if code := run(ctx, []string{"compact-file", "-"}, e); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

func TestSeqText(t *testing.T) {
	t.Parallel()
	if got := seqText(chat.RangesOf(1, 2, 3, 7, 9, 10)); got != "1-3, 7, 9-10" {
		t.Error(got)
	}
}

// What is printed of a file does not grow with it: the view is for those who ask for it.
func TestCompactFilePrintsWhatChanged(t *testing.T) {
	t.Parallel()
	home := []string{"HOME=" + t.TempDir()}
	long := file(t, "long.jsonl", conversation("long", 300))
	r := invoke(t, home, "compact-file", long, "--target=30000").want(t, 0, "STAYS", "summaries", "messages as they were", "EXCLUDED BY", "summary of messages ")
	if n := strings.Count(r.stdout, "\n"); n > 80 {
		t.Errorf("%d lines:\n%s", n, r.stdout)
	}
	if r := invoke(t, home, "compact-file", long, "--target=1000000", "--policy-windows={gpt-4: 2000000}").want(t, 0, "nothing to do"); strings.Count(r.stdout, "\n") > 10 {
		t.Errorf("of an unchanged view:\n%s", r.stdout)
	}
	if r := invoke(t, home, "compact-file", long, "--target=1000000", "--policy-windows={gpt-4: 2000000}", "--view"); strings.Count(r.stdout, "\n") < 600 {
		t.Errorf("--view has %d lines", strings.Count(r.stdout, "\n"))
	}
	var many strings.Builder
	for i := range 50 {
		many.WriteString(conversation("s"+string(rune('a'+i%26))+string(rune('a'+i/26)), 4))
	}
	r = invoke(t, home, "compact-file", file(t, "many.jsonl", many.String())).want(t, 0, "SESSION", "… and 10 more", "50 sessions: messages ", "50 sessions were below the policy's target")
	if n := strings.Count(r.stdout, "\n"); n > 50 {
		t.Errorf("%d lines of 50 sessions:\n%s", n, r.stdout)
	}
}
