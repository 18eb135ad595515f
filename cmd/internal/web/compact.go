package web

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
)

// compactOn is the page that previews a run of a session.
type compactOn struct {
	State api.SessionState
	Kinds api.Strategies
	// Part is the address of the preview.
	Part string
}

// Paused reports whether a pause holds the session.
func (c compactOn) Paused() bool {
	for _, h := range c.State.Explanation.HeldBack {
		if h.Code == store.CodePaused {
			return true
		}
	}
	return false
}

func showCompact(q *request) (any, error) {
	var out compactOn
	if err := q.get(&out.State, api.Path("sessions", q.param("id"))); err != nil {
		return nil, err
	}
	q.Tenant = out.State.Tenant
	query := q.r.URL.Query()
	if out.Paused() {
		query.Set("paused", "1")
	}
	out.Part = link("compact/plan") + "?" + query.Encode()
	return out, q.get(&out.Kinds, "/v1/strategies")
}

// planOn is the part of the page with the effects of a run.
type planOn struct {
	*reports.Preview
	Problem *api.Problem
	Diff    *changeOn
	Kept    keptOn
	// Text is the extract that stands for the summary, as it may be changed.
	Text  string
	Texts bool
	// Way and its value are the field of the operation that says with which strategies; "" for those of the policy.
	Way, Value, From, Focus string
	Paused                  bool
	// Out, In and Wrote sum the change.
	Out, In, Wrote struct {
		Messages int64
		Tokens   chat.Tokens
	}
}

// planCompact previews a run. The problem of an operation is shown in the part.
func planCompact(q *request) (any, error) {
	out := planOn{From: q.param("from"), Focus: q.param("focus"), Texts: q.texts(), Paused: q.param("paused") != ""}
	in := api.CompactionRequest{From: out.From, Focus: out.Focus, DryRun: true}
	out.Way, out.Value, _ = strings.Cut(q.param("with"), ":")
	switch out.Way {
	case "preset":
		in.Preset = out.Value
	case "strategies":
		in.Strategies = []string{out.Value}
	}
	var c api.Compaction
	err := q.Call(q.r.Context(), http.MethodPost, q.target(api.Path("sessions", q.param("id"), "compact")), in, &c)
	if p, ok := errors.AsType[*api.Problem](err); ok {
		out.Problem = p
		return out, nil
	} else if err != nil {
		return nil, err
	}
	out.Preview, out.Diff = c.Preview, newChange(*c.Diff)
	out.Kept = keptOn{c.Preview.Kept, !out.Texts, q.Tenant, q.param("id")}
	for _, p := range out.Diff.Out {
		out.Out.Messages, out.Out.Tokens = out.Out.Messages+p.Messages, out.Out.Tokens+p.Tokens
	}
	for _, p := range out.Diff.In {
		out.In.Messages, out.In.Tokens = out.In.Messages+p.Messages, out.In.Tokens+p.Tokens
	}
	for _, m := range c.Diff.Wrote {
		out.Wrote.Messages, out.Wrote.Tokens = out.Wrote.Messages+1, out.Wrote.Tokens+m.Tokens
		if m.Kind == chat.KindSummary {
			out.Text, _ = extract.Split(frame.Body(newMessage(m, true, math.MaxInt).Text))
		}
	}
	return out, nil
}

// Scale returns the size that is the whole width of the bars: the window, or the view if that is larger.
func (p planOn) Scale() float64 {
	return math.Max(float64(p.Start)*1.25, float64(max(p.TokensBefore, p.TokensAfter)))
}

// Meaning returns a sentence about the outcome.
func (p planOn) Meaning() string { return reports.Meaning(store.RunRow{Outcome: p.Outcome}) }

// Saved returns the change in per cent.
func (p planOn) Saved() string {
	change := 100 * float64(p.TokensAfter-p.TokensBefore) / math.Max(1, float64(p.TokensBefore))
	return strings.Replace(fmt.Sprintf("%+.0f", change), "-", "−", 1)
}
