package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

var fleetPages = slices.Concat([]page{
	{"sessions", "sessions", "sessions", "Sessions", sessionList},
	{"held-back", "held-back", "held", "Held back", heldBack},
	{"find", "find", "sessions", "Find", find},
}, sweepPages)

// listed is a page of an answer of the API.
type listed[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// Size is a number of tokens on the scale of a window, which ends at four fifths of the width, else twice the start does.
type Size struct{ Tokens, Start, Target, Window chat.Tokens }

// X returns the place of a number of tokens in per cent of the width.
func (s Size) X(t chat.Tokens) float64 {
	if whole := cmp.Or(s.Window, 2*s.Start, s.Tokens); whole > 0 {
		return min(100, 80*float64(t)/float64(whole))
	}
	return 0
}

// Used returns the end of the part that is not over the start.
func (s Size) Used() float64 {
	if s.Start == 0 {
		return s.X(s.Tokens)
	}
	return s.X(min(s.Tokens, s.Start))
}

// Beyond returns the width of the part over the start.
func (s Size) Beyond() float64 { return s.X(s.Tokens) - s.Used() }

// Cut reports whether it does not fit on the scale.
func (s Size) Cut() bool { return s.X(s.Tokens) == 100 && s.Tokens > 0 }

// item is a row of a list of sessions.
type item struct{ reports.SessionItem }

// Name returns the first request, or the id.
func (i item) Name() string {
	if i.Detail != nil && i.Detail.FirstRequest != "" {
		return i.Detail.FirstRequest
	}
	return i.Session
}

// Size returns the size on its scale.
func (i item) Size() Size {
	s := Size{Tokens: i.ContextTokens, Start: i.DueTokens}
	if i.Detail != nil {
		s.Target, s.Window = i.Detail.Target, i.Detail.Window
	}
	return s
}

// Over returns the tokens over the start.
func (i item) Over() chat.Tokens {
	if i.DueTokens == 0 {
		return 0
	}
	return max(0, i.ContextTokens-i.DueTokens)
}

// OfStart returns the size as a share of the start.
func (i item) OfStart() string {
	return strconv.FormatInt(int64(100*i.ContextTokens/max(1, i.DueTokens)), 10) + " %"
}

// pageRows is the number of rows of a page of a list.
const pageRows = "25"

// sessionFilters are the parameters of the list of sessions, which are those of its operation.
var sessionFilters = []string{"due", "held", "quarantined", "model", "policy", "label", "q", "parent"}

// sessionsView is the page of sessions.
type sessionsView struct {
	listed[item]
	// Filter has the parameters that are given.
	Filter url.Values
	// Early reports that the page has stopped before it was full.
	Early   bool
	Reasons []struct{ Reason, Text string }
}

// Shell returns the command that lists sessions.
func (v sessionsView) Shell() string {
	words := []any{"compactor", "sessions"}
	if v.Filter.Get("due") != "" {
		words = append(words, "--due")
	}
	if parent := v.Filter.Get("parent"); parent != "" {
		words = append(words, "--children-of", parent)
	}
	return shell(words...)
}

func sessionList(q *request) (any, error) {
	out := sessionsView{Filter: url.Values{}, Reasons: store.HeldReasons}
	query := []string{"limit", pageRows, "after", q.param("after"), "detail", "true", "names", q.names()}
	for _, name := range sessionFilters {
		for _, value := range q.r.URL.Query()[name] {
			if value != "" {
				out.Filter.Add(name, value)
				query = append(query, name, value)
			}
		}
	}
	if err := q.get(&out, "/v1/sessions", append(query, "order", q.param("order"))...); err != nil {
		return nil, err
	}
	out.Early = out.Next != "" && strconv.Itoa(len(out.Items)) != pageRows
	return out, nil
}

// names returns the parameter that asks for first requests, "" where texts are hidden.
func (q *request) names() string {
	if q.texts() {
		return "true"
	}
	return ""
}

// heldReason is a reason with its causes, and some of its sessions.
type heldReason struct {
	Reason, Text string
	Sessions     int64
	Causes       []store.Held
	Rows         []item
	More         bool
}

// Command returns the command that ends a cause, "" where none does.
func (heldReason) Command(h store.Held) string {
	_, command, ok := strings.Cut(h.EndsBy, "compactor ")
	if !ok || strings.Contains(command, "SESSION") {
		return ""
	}
	return "compactor " + command
}

// heldView is the page of the reasons that hold sessions back.
type heldView struct {
	Reasons []*heldReason
	None    []string // that hold no session
}

func heldBack(q *request) (any, error) {
	var all listed[store.Held]
	if err := q.get(&all, "/v1/held-back"); err != nil {
		return nil, err
	}
	var out heldView
	for _, r := range store.HeldReasons {
		held := heldReason{Reason: r.Reason, Text: r.Text}
		for _, h := range all.Items {
			if h.Reason == r.Reason {
				held.Causes = append(held.Causes, h)
				held.Sessions += h.Sessions
			}
		}
		if held.Sessions == 0 {
			out.None = append(out.None, r.Reason)
			continue
		}
		out.Reasons = append(out.Reasons, &held)
	}
	slices.SortStableFunc(out.Reasons, func(a, b *heldReason) int { return cmp.Compare(b.Sessions, a.Sessions) })
	for _, h := range out.Reasons { // one call for each reason
		var rows listed[item]
		order := "over"
		if !h.Causes[0].Due() {
			order = "created"
		}
		if err := q.get(&rows, "/v1/sessions", "held", h.Reason, "limit", "5", "detail", "true", "names", q.names(), "order", order); err != nil {
			return nil, err
		}
		slices.SortStableFunc(rows.Items, func(a, b item) int { return cmp.Compare(b.Over(), a.Over()) })
		h.Rows, h.More = rows.Items, h.Sessions > int64(len(rows.Items))
	}
	return out, nil
}

// foundView is the page of a search.
type foundView struct {
	listed[item]
	Query string
}

// find goes to the session, run or summary that the parameter q names, or lists the sessions with it in their id.
func find(q *request) (any, error) {
	out := foundView{Query: strings.TrimSpace(q.param("q"))}
	if out.Query == "" {
		return out, nil
	}
	if err := q.get(&out, "/v1/sessions", "id", out.Query, "limit", pageRows, "detail", "true", "names", q.names()); err != nil {
		return nil, err
	}
	if len(out.Items) == 0 {
		to, err := q.runNamed(out.Query)
		if err != nil || to != "" {
			return redirect(to), err
		}
		if err := q.get(&out, "/v1/sessions", "q", out.Query, "limit", pageRows, "after", q.param("after"), "detail", "true", "names", q.names()); err != nil {
			return nil, err
		}
	}
	if len(out.Items) == 1 && out.Next == "" && q.param("after") == "" {
		return redirect(sessionURL(out.Items[0].Tenant, out.Items[0].Session)), nil
	}
	return out, nil
}

// runNamed returns the address of the run with a number, or of the run that wrote a summary; "" for neither.
func (q *request) runNamed(name string) (string, error) {
	var found struct {
		Run any `json:"run"` // of a run its number, of a summary its run
	}
	operation := api.Path("summaries", name)
	if _, err := strconv.ParseUint(name, 10, 63); err == nil {
		operation = api.Path("runs", name)
	} else if !strings.HasPrefix(name, "summary-") && !strings.HasPrefix(name, "standin-") {
		return "", nil
	}
	err := q.get(&found, operation)
	if p, ok := errors.AsType[*api.Problem](err); ok && (p.Status == http.StatusNotFound || p.Status == http.StatusUnprocessableEntity) {
		return "", nil
	}
	if run, ok := found.Run.(map[string]any); ok {
		found.Run = run["run"]
	}
	if n, ok := found.Run.(float64); ok {
		return link("run", "run", strconv.FormatInt(int64(n), 10)), err
	}
	return "", err
}

// redirect is the result of a page that is at another address.
type redirect string

// since returns the time so many hours ago as the API reads it.
func (q *request) since(hours int) string {
	return q.Now.Add(-time.Duration(hours) * time.Hour).UTC().Truncate(time.Minute).Format(time.RFC3339)
}
