package trajectory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/plan"
)

// says is a summarizer that gives one answer and records its requests.
type says struct {
	answer string
	err    error
	asked  []plan.Request
}

func (s *says) Summarize(_ context.Context, r plan.Request) (string, error) {
	s.asked = append(s.asked, r)
	return s.answer, s.err
}

// run makes turns of 40 characters each: "s" system, "h" human, "g" gpt, "t" tool.
func run(shape string) []Turn {
	from := map[rune]string{'s': System, 'h': Human, 'g': GPT, 't': Tool}
	var out []Turn
	for i, r := range shape {
		out = append(out, Turn{from[r], fmt.Sprintf("%-40d", i)})
	}
	return out
}

func TestCompressTakesTurnsFromTheMiddle(t *testing.T) {
	t.Parallel()
	all := []string{System, Human, GPT, Tool}
	tests := map[string]struct {
		shape   string
		target  int
		summary int
		first   []string
		last    int
		split   bool
		want    Region
	}{
		"within its target it stays": {
			shape: "shgtgtgtgt", target: 100, first: all, last: 2, want: Region{-1, -1, 0},
		},
		"as many turns as it takes": {
			shape: "shgtgtgtgtgt", target: 100, first: all, last: 2, want: Region{4, 6, 2},
		},
		"the summary needs room too": {
			shape: "shgtgtgtgtgt", target: 100, summary: 1, first: all, last: 2, want: Region{4, 8, 4},
		},
		"no more than there is": {
			shape: "shgtgtgtgtgt", target: 0, first: all, last: 2, want: Region{4, 10, 6},
		},
		"all responses to a call": {
			shape: "shgtgtttgg", target: 80, first: all, last: 1, want: Region{4, 8, 4},
		},
		"responses behind the head stay with their call": {
			shape: "shgtttgtgg", target: 0, first: all, last: 1, want: Region{6, 9, 3},
		},
		"the call of a response in the tail stays": {
			shape: "shgtgtgggttt", target: 0, first: all, last: 2, want: Region{4, 8, 4},
		},
		"nothing is left between": {
			shape: "shgtgttt", target: 0, first: all, last: 1, want: Region{-1, -1, 0},
		},
		"the reference splits": {
			shape: "shgtgtttgg", target: 80, first: all, last: 1, split: true, want: Region{4, 6, 2},
		},
		"a first tool in the second half belongs to the tail": {
			shape: "shgggghggtgg", target: 0, first: all, last: 1, want: Region{3, 8, 5},
		},
		"nothing protected": {
			shape: "ghgh", target: 0, want: Region{0, 4, 4},
		},
		"all protected": {
			shape: "shgt", target: 0, first: all, last: 4, want: Region{-1, -1, 0},
		},
		"no turns": {
			want: Region{-1, -1, 0},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{
				Target: tt.target, SummaryTokens: tt.summary, ProtectFirst: tt.first, ProtectLast: tt.last, SplitCalls: tt.split,
				Notice: "notice", Attempts: 1,
			}
			turns := run(tt.shape)
			before := slices.Clone(turns)
			got, m, err := Compress(t.Context(), turns, o, &says{answer: "told"})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, turns); d != "" {
				t.Errorf("the input changed: %s", d)
			}
			if m.Region != tt.want {
				t.Fatalf("region %+v, want %+v", m.Region, tt.want)
			}
			want := before
			if m.Compressed {
				want = slices.Clone(before[:tt.want.Start])
				for i := range want {
					if want[i].From == System {
						want[i].Value += "\n\nnotice"
					}
				}
				want = append(append(want, Turn{Human, Prefix + " told"}), before[tt.want.End:]...)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestCompressReportsAndPassesThrough(t *testing.T) {
	t.Parallel()
	o := Options{Attempts: 2}
	turns := run("shgtgtg")
	s := &says{err: errors.New("overloaded")}
	got, m, err := Compress(t.Context(), turns, o, s)
	if !errors.Is(err, ErrNoSummary) || !errors.Is(err, s.err) {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff(turns, got); d != "" || m.Compressed || m.SummaryCalls != 2 || m.SummaryErrors != 2 || !m.StillOver {
		t.Errorf("metrics %+v, turns %s", m, d)
	}
	o.Fallback = "unknown"
	got, m, err = Compress(t.Context(), turns, o, s)
	if err != nil || len(got) != 1 || got[0].Value != Prefix+" unknown" || !m.Compressed || m.SummaryErrors != 2 {
		t.Errorf("with a fallback: %v, %+v, %v", got, m, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, m, err = Compress(ctx, turns, o, s); !errors.Is(err, context.Canceled) || m.SummaryCalls != 1 {
		t.Errorf("cancelled: %v, %+v", err, m)
	}
	_, _, err = Compress(t.Context(), turns, Options{Target: -1, ProtectLast: -2, Timeout: -3}, s)
	for _, part := range []string{"target", "protected last turns", "attempts", "timeout"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}

func TestSummariesHaveTheirPrefixOnce(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"":                                  Prefix,
		" \n":                               Prefix,
		"told":                              Prefix + " told",
		Prefix + "told ":                    Prefix + " told",
		Prefix + "\n" + Prefix + "  told":   Prefix + " told",
		Prefix:                              Prefix,
		"the password: " + "hunter2" + "!!": Prefix + " the password: ***!!",
		"password: " + "hunter2":            Prefix + " password: ***",
	} {
		got, _, err := Compress(t.Context(), run("shgtgtg"), Options{Attempts: 1}, &says{answer: answer})
		if err != nil || got[0].Value != want {
			t.Errorf("%q became %q (%v), want %q", answer, got[0].Value, err, want)
		}
	}
}

func TestTheSummarizerSeesClippedTurnsWithoutSecrets(t *testing.T) {
	t.Parallel()
	turns := []Turn{
		{Human, "hi"},
		{GPT, strings.Repeat("é", 3000)},
		{Tool, "API_KEY=" + "abcdef\n" + strings.Repeat("a", 1491) + strings.Repeat("b", 2000) + strings.Repeat("c", 500)},
	}
	s := &says{}
	o := Options{Attempts: 1, ProtectFirst: []string{Human}, SummaryTokens: 30}
	if _, _, err := Compress(t.Context(), turns, o, s); err != nil {
		t.Fatal(err)
	}
	want := "[Turn 1 - GPT]:\n" + turns[1].Value + "\n\n[Turn 2 - TOOL]:\nAPI_KEY=***\n" + strings.Repeat("a", 1488) +
		"\n...[truncated]...\n" + strings.Repeat("c", 500)
	if d := cmp.Diff(want, s.asked[0].User); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if r := s.asked[0]; r.MaxTokens != 60 || !strings.Contains(r.System, "about 30 tokens") {
		t.Errorf("asked %+v", r)
	}
}

func TestCallsAreNeverSplitFromTheirResponses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var turns []Turn
		for range rapid.IntRange(0, 30).Draw(t, "turns") {
			turns = append(turns, Turn{
				rapid.SampledFrom([]string{System, Human, GPT, GPT, Tool, Tool, "observation", "critic"}).Draw(t, "from"),
				strings.Repeat("text ", rapid.IntRange(0, 60).Draw(t, "length")),
			})
		}
		o := Options{
			Target: rapid.IntRange(0, 600).Draw(t, "target"), SummaryTokens: rapid.IntRange(0, 100).Draw(t, "summary"),
			ProtectFirst: rapid.SliceOfDistinct(rapid.SampledFrom([]string{System, Human, GPT, Tool}), rapid.ID).Draw(t, "first"),
			ProtectLast:  rapid.IntRange(0, 6).Draw(t, "last"), Attempts: 1,
		}
		got, m, err := Compress(context.Background(), turns, o, &says{answer: "told"})
		if err != nil {
			t.Fatal(err)
		}
		if !m.Compressed {
			if d := cmp.Diff(turns, got); d != "" {
				t.Fatalf("not compressed, but %s", d)
			}
			return
		}
		r := m.Region
		for _, at := range []int{r.Start, r.End} {
			if at > 0 && at < len(turns) && isResponse(turns[at]) {
				t.Fatalf("%+v splits the response %d from its call", r, at)
			}
		}
		if r.End > len(turns)-o.ProtectLast || r.Turns != r.End-r.Start || r.Turns < 1 {
			t.Fatalf("%+v of %d turns", r, len(turns))
		}
		if m.CompressedTurns != len(got) || m.TurnsRemoved != len(turns)-len(got) || m.TokensSaved != m.OriginalTokens-m.CompressedTokens ||
			m.StillOver != (m.CompressedTokens > o.Target) {
			t.Fatalf("metrics %+v", m)
		}
		for _, from := range o.ProtectFirst {
			if i := slices.IndexFunc(turns, func(t Turn) bool { return t.From == from }); i >= r.Start && i < r.End {
				t.Fatalf("%+v takes the first turn of %s", r, from)
			}
		}
	})
}

func TestDigest(t *testing.T) {
	t.Parallel()
	call := func(name, arguments string) string {
		return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}\n</tool_call>\n"
	}
	response := func(content string) string {
		return "<tool_response>\n{\"tool_call_id\": \"x\", \"name\": \"terminal\", \"content\": " + content + "}\n</tool_response>\n"
	}
	turns := []Turn{
		{Human, "\n please \nlook"},
		{GPT, "<think>\nhm\n</think>\nI look.\n" + call("terminal", `{"command":"ls"}`) + call("todo", `{}`)},
		{Tool, response(`"a\nb"`) + response(`{"exit_code": 0}`)},
		{GPT, call("read_file", `{"path":"p"}`)},
		{Tool, "raw output"},
		{Tool, "more\noutput"},
		{GPT, "password: " + "hunter2\nand more"},
	}
	want := `human: please
gpt: I look. → terminal → todo
tool: [terminal] ran ` + "`ls`" + ` -> exit ?, 2 lines output [todo] updated task list
gpt: → read_file
tool: [read_file] read p from line 1 (10 chars)
tool: more
gpt: password: ***`
	if d := cmp.Diff(want, Digest(turns, 4000)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if strings.Count(Digest(turns, 100), "\n") > 3 || !strings.Contains(Digest(turns, 100), "… 5 more turns …") {
		t.Errorf("a short digest is\n%s", Digest(turns, 100))
	}
	if got := Digest(nil, 10); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func FuzzDigest(f *testing.F) {
	f.Add("<tool_call>{\"name\":\"t\"}</tool_call>", "<tool_response>{}</tool_response>", 100)
	f.Add("<think></think>", "x", 0)
	f.Fuzz(func(t *testing.T, said, answered string, limit int) {
		limit = max(0, min(limit, 10000))
		got := Digest([]Turn{{GPT, said}, {Tool, answered}, {GPT, answered}, {Tool, said}}, limit)
		if n := utf8.RuneCountInString(got); n > max(limit, narrowest+1)+2*widest {
			t.Errorf("%d characters, want about %d", n, limit)
		}
	})
}
