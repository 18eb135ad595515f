package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/stub"
	"github.com/sessionstore/compactor/strategies/trajectory"
)

func init() {
	checkers["hermes/hermes_stub"] = checkHermesStub
	checkers["hermes/hermes_args"] = checkHermesArgs
	checkers["hermes/hermes_redact"] = checkHermesRedact
	checkers["hermes/hermes_prune"] = checkHermesPrune
	checkers["hermes/trajectory"] = checkHermesTrajectory
}

// seedOf reads the results of the reference's first version.
func seedOf[T any](v *vector) (T, error) {
	var expect struct {
		Seed *T `json:"seed"`
	}
	if err := json.Unmarshal(v.Expect, &expect); err != nil {
		return *new(T), err
	}
	if expect.Seed == nil {
		return *new(T), fmt.Errorf("nothing is expected of the seed version")
	}
	return *expect.Seed, nil
}

// seedAndChat returns the results of the reference's first version, and its input.
func seedAndChat[T any](v *vector) (T, []chat.Message, error) {
	want, err := seedOf[T](v)
	if err != nil {
		return want, nil, err
	}
	messages, err := v.chat()
	return want, messages, err
}

type seedText struct {
	Text string `json:"text"`
}

func checkHermesStub(v *vector) error {
	want, err := seedOf[seedText](v)
	if err != nil {
		return err
	}
	got := stub.Line(param(v, "tool", ""), param(v, "args", ""), param(v, "content", ""))
	return sameStub(got, want.Text)
}

// sameStub compares stubs up to how Python prints values that are no strings.
func sameStub(got, want string) error {
	if got != want && unpython(got) != unpython(want) {
		return fmt.Errorf("stub %q, want %q", got, want)
	}
	return nil
}

func unpython(s string) string {
	return strings.NewReplacer("'", `"`, "None", "null", "True", "true", "False", "false").Replace(s)
}

func checkHermesArgs(v *vector) error {
	want, err := seedOf[seedText](v)
	if err != nil {
		return err
	}
	got, _ := stub.Arguments(param(v, "args", ""), 0, 200)
	return sameArguments(got, want.Text)
}

// sameArguments compares arguments after parsing them.
func sameArguments(got, want string) error {
	g, gotJSON := parsed(got)
	w, wantJSON := parsed(want)
	if got != want && (!gotJSON || !wantJSON || !reflect.DeepEqual(g, w)) {
		return fmt.Errorf("arguments %q, want %q", got, want)
	}
	return nil
}

// parsed is JSON as values; integers are exact, other numbers as near as a float is.
func parsed(s string) (any, bool) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return nil, false
	}
	return withFloats(v), true
}

func withFloats(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withFloats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = withFloats(v[k])
		}
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			f, _ := strconv.ParseFloat(string(v), 64)
			return f
		}
	}
	return v
}

var tokenCount = regexp.MustCompile(`(TOKENS=)\d+["']?`)

// hermesRedact masks what Redact does and, as the reference does and Redact does not, what
// counts tokens.
func hermesRedact(s string) (string, int) {
	counts := len(tokenCount.FindAllString(s, -1))
	s, found := redact.Redact(tokenCount.ReplaceAllString(s, "$1***"))
	return s, counts + found.Total()
}

func checkHermesRedact(v *vector) error {
	want, err := seedOf[seedText](v)
	if err != nil {
		return err
	}
	in := param(v, "text", "")
	got, n := hermesRedact(in)
	ours, err := hiddenIn(in, got)
	if err != nil {
		return err
	}
	if (n > 0) != slices.Contains(ours, true) {
		return fmt.Errorf("%d masked in %q", n, got)
	}
	theirs, err := hiddenIn(tight(in), tight(want.Text))
	if err != nil {
		return fmt.Errorf("what is expected: %w", err)
	}
	if ours, err = hiddenIn(tight(in), tight(got)); err != nil {
		return err
	}
	for i := range theirs {
		if theirs[i] && !ours[i] {
			return fmt.Errorf("%q became %q, want %q", in, got, want.Text)
		}
	}
	if again, _ := hermesRedact(got); again != got {
		return fmt.Errorf("%q became %q and then %q", in, got, again)
	}
	return nil
}

var aMask = regexp.MustCompile(`\[REDACTED[^\]]*\]|\*{3,}|\S{6}\.\.\.\S{4}`)

var assignment = regexp.MustCompile(`[ \t]*=[ \t]*`)

// tight returns a text without blanks around signs of equality: the reference drops those in
// front of what it masks, Redact keeps them.
func tight(s string) string { return assignment.ReplaceAllString(s, "=") }

// hiddenIn marks the bytes of a text that a redacted one does not hold. What a mask
// shows counts as hidden.
func hiddenIn(in, redacted string) ([]bool, error) {
	hidden := make([]bool, len(in))
	if in == redacted {
		return hidden, nil
	}
	at := 0
	kept := aMask.Split(redacted, -1)
	for i, k := range kept {
		n := strings.Index(in[at:], k)
		if i == len(kept)-1 {
			n = len(in) - at - len(k)
		}
		if n < 0 || i == 0 && n > 0 || !strings.HasPrefix(in[at+n:], k) {
			return nil, fmt.Errorf("%q became %q, which does more than mask", in, redacted)
		}
		for j := at; j < at+n; j++ {
			hidden[j] = true
		}
		at += n + len(k)
	}
	return hidden, nil
}

// hermesItem is a message that the reference returns.
type hermesItem struct {
	Ref       *int    `json:"ref"`
	Content   *string `json:"content"`
	ToolCalls []struct {
		ID        string  `json:"id"`
		Arguments *string `json:"arguments"`
	} `json:"tool_calls"`
}

func checkHermesPrune(v *vector) error {
	want, messages, err := seedAndChat[struct {
		Pruned int          `json:"pruned"`
		Out    []hermesItem `json:"out"`
	}](v)
	if err != nil {
		return err
	}
	s, err := Registry().New("prune_tool_results", plan.Params{
		"protect_last_n":      param(v, "protect_tail_count", 20),
		"protect_tail_tokens": param(v, "protect_tail_tokens", 0),
	})
	if err != nil {
		return err
	}
	session := sessiontest.Of(messages...)
	d, err := pipeline.NewDraft(session.Transcript(false))
	if err != nil {
		return err
	}
	if _, err := d.Run(context.Background(), s, session.Load); err != nil {
		return err
	}
	if d.Rejected() > 0 {
		return fmt.Errorf("%d replacements were rejected", d.Rejected())
	}
	results := 0
	for _, a := range d.Plan().Additions {
		if a.Reason != reasonShrunk {
			results++
		}
	}
	if results != want.Pruned {
		return fmt.Errorf("%d results pruned, want %d", results, want.Pruned)
	}
	var view []*chat.Message
	for i := range d.Transcript().Entries {
		if e := &d.Transcript().Entries[i]; e.Included {
			m := e.Message
			if m == nil {
				m = session.Messages[e.Seq]
			}
			view = append(view, m)
		}
	}
	if len(view) != len(want.Out) {
		return fmt.Errorf("%d messages, want %d", len(view), len(want.Out))
	}
	for i, w := range want.Out {
		if w.Ref == nil {
			return fmt.Errorf("message %d: expected to be something new", i)
		}
		if err := samePruned(view[i], &messages[*w.Ref], w); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	switch changed, err := d.Run(context.Background(), s, session.Load); {
	case err != nil:
		return fmt.Errorf("second pass: %w", err)
	case changed:
		return errors.New("a second pass changes the view again")
	}
	if len(v.Breaks) > 0 {
		return keepsInvariants(session, s)
	}
	return nil
}

func samePruned(got, original *chat.Message, want hermesItem) error {
	content := original.Content.String()
	if want.Content != nil {
		content = *want.Content
	}
	if got.Role != original.Role || got.ToolCallID != original.ToolCallID {
		return fmt.Errorf("a %s message for %q, want %s for %q", got.Role, got.ToolCallID, original.Role, original.ToolCallID)
	}
	if err := sameStub(got.Content.String(), content); err != nil {
		return err
	}
	if want.ToolCalls == nil {
		if !reflect.DeepEqual(got.ToolCalls, original.ToolCalls) {
			return fmt.Errorf("calls %v, want %v", got.ToolCalls, original.ToolCalls)
		}
		return nil
	}
	if len(got.ToolCalls) != len(want.ToolCalls) {
		return fmt.Errorf("%d calls, want %d", len(got.ToolCalls), len(want.ToolCalls))
	}
	for i, w := range want.ToolCalls {
		arguments := original.ToolCalls[i].Arguments
		if w.Arguments != nil {
			arguments = *w.Arguments
		}
		if err := sameArguments(got.ToolCalls[i].Arguments, arguments); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		if got.ToolCalls[i].ID != w.ID {
			return fmt.Errorf("call %d is %q, want %q", i, got.ToolCalls[i].ID, w.ID)
		}
		var written chat.Message
		if err := json.Unmarshal(got.AppendJSON(nil), &written); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		if written.ToolCalls[i].Arguments != got.ToolCalls[i].Arguments {
			return fmt.Errorf("call %d is written as %s", i, got.AppendJSON(nil))
		}
	}
	return nil
}

// seedTrajectory is a trajectory of the reference.
type seedTrajectory struct {
	Out []struct {
		Ref    *int   `json:"ref"`
		Append string `json:"append"`
		From   string `json:"from"`
		Text   string `json:"text"`
	} `json:"out"`
	Metrics trajectory.Metrics `json:"metrics"`
	SHA256  string             `json:"content_sha256"`
	Chars   int                `json:"content_chars"`
}

func checkHermesTrajectory(v *vector) error {
	want, err := seedOf[seedTrajectory](v)
	if err != nil {
		return err
	}
	turns := make([]trajectory.Turn, len(v.Messages))
	for i, raw := range v.Messages {
		if err := json.Unmarshal(raw, &turns[i]); err != nil {
			return err
		}
	}
	o := trajectory.Defaults()
	o.SplitCalls = true
	o.Target = param(v, "target_max_tokens", o.Target)
	o.SummaryTokens = param(v, "summary_target_tokens", o.SummaryTokens)
	o.ProtectLast = param(v, "protect_last_n_turns", o.ProtectLast)
	o.ProtectFirst = slices.DeleteFunc(o.ProtectFirst, func(from string) bool { return !param(v, "protect_first_"+from, true) })
	o.Notice = strings.Repeat("n", 75)
	if !param(v, "add_summary_notice", true) {
		o.Notice = ""
	}
	fake := &trajectorySummarizer{failures: want.Metrics.SummaryErrors, reply: "SUMMARY(1)"}
	for _, w := range want.Out {
		if w.Ref == nil {
			// Where the summarizer fails, or says more than usual, its words are the reference's.
			said := strings.TrimSpace(strings.TrimPrefix(w.Text, trajectory.Prefix))
			o.Fallback = fallbackFiller.ReplaceAllStringFunc(said, func(s string) string { return strings.Repeat("f", 252+len(s)) })
			switch mode := param(v, "summarizer", "ok"); mode {
			case "ok":
			case "empty", "none":
				fake.reply = ""
			case "prefixed":
				fake.reply = trajectory.Prefix + " SUMMARY(1)"
			default:
				fake.reply = said
			}
		}
	}
	got, metrics, err := trajectory.Compress(context.Background(), turns, o, fake)
	if err != nil {
		return err
	}
	if metrics != want.Metrics {
		return fmt.Errorf("metrics %+v, want %+v", metrics, want.Metrics)
	}
	if len(got) != len(want.Out) {
		return fmt.Errorf("%d turns, want %d", len(got), len(want.Out))
	}
	for i, w := range want.Out {
		t := trajectory.Turn{From: w.From, Value: w.Text}
		switch {
		case w.Ref != nil:
			t = turns[*w.Ref]
			t.Value += strings.ReplaceAll(w.Append, "{{NOTICE}}", o.Notice)
		case metrics.SummaryErrors == o.Attempts:
			t.Value = strings.TrimSpace(trajectory.Prefix + " " + o.Fallback)
		}
		if got[i] != t {
			return fmt.Errorf("turn %d is %+v, want %+v", i, got[i], t)
		}
	}
	return fake.saw(want, turns)
}

var fallbackFiller = regexp.MustCompile(`\{\{FALLBACK:\d+\}\}`)

// trajectorySummarizer fails a few times and then gives its reply.
type trajectorySummarizer struct {
	failures int
	reply    string
	content  string
}

func (s *trajectorySummarizer) Summarize(_ context.Context, r plan.Request) (string, error) {
	s.content = r.User
	if s.failures--; s.failures >= 0 {
		return "", errors.New("no answer")
	}
	return s.reply, nil
}

// saw compares the summarized messages, unless they contained a secret.
func (s *trajectorySummarizer) saw(want seedTrajectory, turns []trajectory.Turn) error {
	if want.SHA256 == "" {
		return nil
	}
	for _, t := range turns[want.Metrics.Region.Start:want.Metrics.Region.End] {
		if _, found := redact.Redact(t.Value); found.Total() > 0 {
			return nil
		}
	}
	sum := sha256.Sum256([]byte(s.content))
	if got, n := hex.EncodeToString(sum[:8]), utf8.RuneCountInString(s.content); got != want.SHA256 || n != want.Chars {
		return fmt.Errorf("%d characters to summarize (%s), want %d (%s)", n, got, want.Chars, want.SHA256)
	}
	return nil
}
