package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

func init() {
	checkers["hermes/hermes_boundary"] = checkHermesBoundary
	checkers["hermes/hermes_serialize"] = checkHermesSerialize
	checkers["hermes/hermes_prefix"] = checkHermesPrefix
	checkers["hermes/hermes_threshold"] = checkHermesThreshold
	checkers["hermes/hermes_feedback"] = checkHermesFeedback
}

func checkHermesBoundary(v *vector) error {
	want, messages, err := seedAndChat[struct {
		Start int
		Tail  int `json:"tail_start"`
	}](v)
	if err != nil {
		return err
	}
	h, err := hermesHandoff(v, &hermesModel{})
	if err != nil {
		return err
	}
	h.first, h.tail = param(v, "head", 0), chat.Tokens(param(v, "token_budget", 0))
	s := make(spans, len(messages))
	for i := range messages {
		s[i] = spanOf(&messages[i])
	}
	if start, end := (referenceHandoff{handoff: h}).bounds(s); start != want.Start || end != want.Tail {
		return fmt.Errorf("%d to %d, want %d to %d", start, end, want.Start, want.Tail)
	}
	return nil
}

func checkHermesSerialize(v *vector) error {
	want, messages, err := seedAndChat[struct {
		Chars            int
		SHA              string `json:"sha256"`
		Text, Head, Tail string
	}](v)
	if err != nil {
		return err
	}
	turns := make([]*chat.Message, len(messages))
	for i := range messages {
		turns[i] = &messages[i]
	}
	task, _ := plan.Task{Messages: turns}.Redact()
	got := hermesTurns(task.Messages)
	if err := sameSerialized(turns, got, want.SHA, want.Chars); err != nil {
		return err
	}
	if text := unmasked(got); want.Text != "" && text != unmasked(want.Text) {
		return fmt.Errorf("turns %q, want %q", got, want.Text)
	}
	n := utf8.RuneCountInString(want.Head)
	if want.Text == "" && !aMask.MatchString(want.Head+want.Tail) && (!strings.HasPrefix(got, want.Head) || !strings.HasSuffix(got, want.Tail)) {
		return fmt.Errorf("turns %.*q … , want %q … %q", n, got, want.Head, want.Tail)
	}
	return nil
}

// unmasked returns a text in which all masks look the same, and so do assignments if there
// are any masks.
func unmasked(s string) string {
	if aMask.MatchString(s) {
		s = tight(s)
	}
	return aMask.ReplaceAllString(s, "***")
}

func checkHermesPrefix(v *vector) error {
	want, err := seedOf[seedText](v)
	if err != nil {
		return err
	}
	h, err := hermesHandoff(v, &hermesModel{})
	if err != nil {
		return err
	}
	if got := h.prefixed(filled(param(v, "text", ""))); got != filled(want.Text) {
		return fmt.Errorf("%q, want %q", got, want.Text)
	}
	return nil
}

func checkHermesThreshold(v *vector) error {
	want, err := seedOf[struct {
		Threshold chat.Tokens `json:"threshold_tokens"`
		Tail      chat.Tokens `json:"tail_token_budget"`
		Summary   chat.Tokens `json:"max_summary_tokens"`
		Should    []bool
	}](v)
	if err != nil {
		return err
	}
	window := chat.Tokens(param(v, "context_length", 0))
	// The reference does not limit the threshold to the window.
	compress := max(chat.Tokens(float64(window)*param(v, "threshold_percent", 0.5)), minimumThreshold)
	got := thresholdsFrom(compress, window, param(v, "summary_target_ratio", 0.2))
	if expected := (Thresholds{want.Threshold, want.Tail, want.Summary}); got != expected {
		return fmt.Errorf("%+v, want %+v", got, expected)
	}
	// Half of this window is the threshold of the reference, also where that is out of
	// reach in its own.
	e, err := Hosts.Engine(HostOptions{Window: 2 * got.Compress, New: func(s plan.Summarizer) (plan.Strategy, error) {
		return hermesHandoff(v, s)
	}})
	if err != nil {
		return err
	}
	for i, tokens := range []chat.Tokens{got.Compress - 1, got.Compress, got.Compress + 1} {
		if should := e.ShouldCompress(tokens); should != want.Should[i] {
			return fmt.Errorf("%d tokens: %v, want %v", tokens, should, want.Should[i])
		}
	}
	return nil
}

func checkHermesFeedback(v *vector) error {
	want, err := seedOf[struct {
		Noop      bool
		Headline  string
		TokenLine string `json:"token_line"`
		Note      *string
	}](v)
	if err != nil {
		return err
	}
	var given struct {
		Strategy struct {
			Params struct {
				Before, After []chat.Message
				BeforeTokens  chat.Tokens `json:"before_tokens"`
				AfterTokens   chat.Tokens `json:"after_tokens"`
			}
		}
	}
	if err := json.Unmarshal(v.Raw, &given); err != nil {
		return err
	}
	p := given.Strategy.Params
	got := Hosts.Feedback(p.Before, p.After, p.BeforeTokens, p.AfterTokens)
	if got.Noop != want.Noop || got.Headline != want.Headline || got.TokenLine != want.TokenLine || (got.Note != "") != (want.Note != nil) {
		return fmt.Errorf("%+v, want %+v", got, want)
	}
	return nil
}
