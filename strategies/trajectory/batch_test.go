package trajectory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/plan"
)

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRunKeepsOrderAndUnchangedParts(t *testing.T) {
	t.Parallel()
	small := `{"id": 1 , "conversations":[{"from":"human","value":"caf\u00e9 <x>"}]}`
	system := `{"note":[1, 2],"from":"system", "value" : "be \ud800 <good>" , "w":1.50}`
	big := `{"conversations": [ ` + system + `,{"from":"human","value":"` + strings.Repeat("q", 400) + `"},{"from":"gpt","value":"end\u0041"} ], "id":12345678901234567890, "conversation":null}`
	var in strings.Builder
	var want []string
	for i := range 40 {
		switch i % 5 {
		case 0:
			fmt.Fprintf(&in, "%s\r\n", small)
			want = append(want, small)
		case 1:
			fmt.Fprintf(&in, "\n  %s\n\n", big)
			summary := `{"from":"human","value":"` + Prefix + ` told"}`
			want = append(want, `{"conversations": [`+strings.Replace(system, `<good>"`, `<good>\n\nsome <b>notice</b>"`, 1)+`, `+summary+
				`, {"from":"gpt","value":"end\u0041"}], "id":12345678901234567890, "conversation":null}`)
		case 2:
			in.WriteString("no JSON\n")
			want = append(want, "no JSON")
		case 3:
			in.WriteString(`{"messages":[]}` + "\n")
			want = append(want, `{"messages":[]}`)
		case 4:
			in.WriteString(`[{"from":"human"}]` + "\n")
			want = append(want, `[{"from":"human"}]`)
		}
	}
	var out bytes.Buffer
	var lines []int
	var running, most atomic.Int32
	o := Options{Target: 30, Attempts: 1, ProtectFirst: []string{System}, ProtectLast: 1, Notice: "some <b>notice</b>"}
	report, err := Run(t.Context(), strings.NewReader(strings.TrimSuffix(in.String(), "\n")), &out, Batch{
		Options: o, Workers: 3,
		Summarizer: plan.Func(func(context.Context, plan.Request) (string, error) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			return "told", nil
		}),
		Done: func(o Outcome) { lines = append(lines, o.Line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for i := 1; i < len(lines); i++ {
		if lines[i] <= lines[i-1] {
			t.Fatalf("lines %v", lines)
		}
	}
	if len(lines) != 40 || report.Trajectories != 40 || report.Compressed != 8 || report.UnderTarget != 8 || report.Failed != 24 ||
		report.SummaryCalls != 8 || report.AverageTurnsRemoved != 0 || report.AverageRatio == 0 || report.TokensSaved <= 0 {
		t.Errorf("%d outcomes, report %+v", len(lines), report)
	}
	if most.Load() > 3 {
		t.Errorf("%d at a time, want at most 3", most.Load())
	}
}

func TestRunCopiesFailedLines(t *testing.T) {
	t.Parallel()
	raw := encode(t, map[string]any{"conversations": run("shgtgtgtgt")}) + "\n"
	for name, s := range map[string]plan.Func{
		"error": func(context.Context, plan.Request) (string, error) { return "", errors.New("no") },
		"panic": func(context.Context, plan.Request) (string, error) { panic("no") },
		"hang": func(ctx context.Context, _ plan.Request) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			var failed error
			report, err := Run(t.Context(), strings.NewReader(raw+raw), &out, Batch{
				Options: Options{Attempts: 2, Timeout: 20 * time.Millisecond}, Summarizer: s, Done: func(o Outcome) { failed = o.Err },
			})
			if err != nil || failed == nil || report.Failed != 2 || out.String() != raw+raw {
				t.Errorf("%v, %v, %+v, %q", err, failed, report, out.String())
			}
		})
	}
}

// endless is lines without end; it counts them.
type endless struct {
	line string
	rest string
	n    atomic.Int64
}

func (e *endless) Read(b []byte) (int, error) {
	if e.rest == "" {
		e.rest = e.line
		e.n.Add(1)
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestRunEndsAndHoldsFewLines(t *testing.T) {
	t.Parallel()
	// Longer than the read buffer.
	in := &endless{line: encode(t, []Turn{{Human, strings.Repeat("x", 100<<10)}}) + "\n"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan struct{}, 100)
	done := make(chan error)
	go func() {
		_, err := Run(ctx, in, io.Discard, Batch{
			Options: Options{Attempts: 1}, Workers: 2,
			Summarizer: plan.Func(func(ctx context.Context, _ plan.Request) (string, error) {
				asked <- struct{}{}
				<-ctx.Done()
				return "", ctx.Err()
			}),
		})
		done <- err
	}()
	<-asked
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := in.n.Load(); n > 3*2+2 {
		t.Errorf("%d lines were read for 2 workers", n)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestRunEndsWhereItCannotWrite(t *testing.T) {
	t.Parallel()
	in := &endless{line: encode(t, run("hg")) + "\n"}
	if _, err := Run(t.Context(), in, full{}, Batch{Options: Defaults()}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
	if _, err := Run(t.Context(), in, io.Discard, Batch{}); err == nil {
		t.Error("invalid options are accepted")
	}
}

func TestReportsAddUp(t *testing.T) {
	t.Parallel()
	outcomes := []Outcome{
		{Metrics: Metrics{Compressed: true, Ratio: 0.5, TokensSaved: 10, TurnsRemoved: 3, OriginalTokens: 20, CompressedTokens: 10, StillOver: true}},
		{Metrics: Metrics{Compressed: true, Ratio: 0.25, TokensSaved: 15, TurnsRemoved: 4, OriginalTokens: 20, CompressedTokens: 5}},
		{Metrics: Metrics{UnderTarget: true, OriginalTokens: 1, CompressedTokens: 1}},
		{Err: errors.New("no")},
	}
	var all BatchReport
	for _, o := range outcomes {
		all.Add(o)
	}
	if all.AverageRatio != 0.375 || all.AverageTokensSaved != 12.5 || all.AverageTurnsRemoved != 3.5 || all.TokensSaved != 25 || all.Failed != 1 {
		t.Errorf("%+v", all)
	}
}

func FuzzRun(f *testing.F) {
	f.Add(`{"conversations":[{"from":"system","value":"a"},{"from":"human","value":"b"},{"from":"gpt","value":"c"}]}`)
	f.Add("[]\n{}\nnull\n")
	f.Add("\xef\xbb\xbf[{\"value\":\"a\",\"from\":\"human\",\"value\":\"aaaaaaaaaa\"}]")
	f.Fuzz(func(t *testing.T, in string) {
		var out bytes.Buffer
		report, err := Run(t.Context(), strings.NewReader(in), &out, Batch{Options: Options{Attempts: 1, ProtectFirst: []string{System}, ProtectLast: 1, Notice: "n"}})
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != report.Trajectories {
			t.Fatalf("%d lines for %d trajectories", n, report.Trajectories)
		}
		// What was JSON still is.
		i := 0
		for line := range strings.SplitSeq(strings.TrimPrefix(in, "\xef\xbb\xbf"), "\n") {
			raw := bytes.TrimSpace([]byte(line))
			if len(raw) == 0 {
				continue
			}
			got := strings.Split(out.String(), "\n")[i]
			i++
			if json.Valid(raw) && !json.Valid([]byte(got)) {
				t.Fatalf("%q became %q", raw, got)
			}
		}
	})
}
