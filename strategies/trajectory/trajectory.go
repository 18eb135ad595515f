package trajectory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
)

// Turn is one turn of a trajectory.
type Turn struct {
	// From is the speaker: system, human, gpt, tool, or any other.
	From  string `json:"from"`
	Value string `json:"value"`
}

// The speakers with a meaning for this package.
const (
	System = "system"
	Human  = "human"
	GPT    = "gpt"
	Tool   = "tool"
)

// Options configure Compress. Start from Defaults.
type Options struct {
	// Target is the maximum number of tokens of a trajectory.
	Target int
	// SummaryTokens is the expected number of tokens of a summary.
	SummaryTokens int
	// ProtectFirst are the speakers whose first turn is kept.
	ProtectFirst []string
	// ProtectLast is the number of turns at the end that are kept.
	ProtectLast int
	// Notice is appended to the system turns of a compressed trajectory, after an
	// empty line; "" appends nothing.
	Notice string
	// Attempts is the maximum number of requests for a summary.
	Attempts int
	// Fallback replaces the summary when all attempts failed. If it is empty, the
	// trajectory fails and keeps its turns.
	Fallback string
	// SplitCalls allows a boundary between a call and its response, as in the
	// reference implementation.
	SplitCalls bool
	// Timeout limits the time that Run spends on one trajectory; 0 means no limit.
	Timeout time.Duration
	// Count returns the tokens of a text; nil means a quarter of its characters.
	Count func(text string) int
}

// Defaults returns the options of the reference implementation, except that calls are not
// split from their responses and that a trajectory fails when its summary does.
func Defaults() Options {
	return Options{
		Target: 15250, SummaryTokens: 750, ProtectFirst: []string{System, Human, GPT, Tool}, ProtectLast: 4,
		Notice:   "Note: some of the turns of this conversation are given as a summary, marked " + Prefix,
		Attempts: 3, Timeout: 5 * time.Minute,
	}
}

// Validate returns an error that lists all invalid options.
func (o Options) Validate() error {
	var errs []error
	for _, f := range []struct {
		name       string
		value, min int
	}{
		{"target", o.Target, 0},
		{"summary tokens", o.SummaryTokens, 0},
		{"protected last turns", o.ProtectLast, 0},
		{"attempts", o.Attempts, 1},
	} {
		if f.value < f.min {
			errs = append(errs, fmt.Errorf("%s: got %d, want at least %d", f.name, f.value, f.min))
		}
	}
	if o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout: got %s, want 0 or more", o.Timeout))
	}
	return errors.Join(errs...)
}

// Metrics are the sizes of one trajectory before and after, in tokens and turns.
type Metrics struct {
	OriginalTokens   int `json:"original_tokens"`
	CompressedTokens int `json:"compressed_tokens"`
	// TokensSaved is negative if the summary and the notice are longer than the turns
	// that they replace.
	TokensSaved int `json:"tokens_saved"`
	// Ratio is the ratio of compressed to original tokens, rounded to four places.
	Ratio           float64 `json:"compression_ratio"`
	OriginalTurns   int     `json:"original_turns"`
	CompressedTurns int     `json:"compressed_turns"`
	TurnsRemoved    int     `json:"turns_removed"`
	Region          Region  `json:"compression_region"`
	Compressed      bool    `json:"was_compressed"`
	StillOver       bool    `json:"still_over_limit"`
	UnderTarget     bool    `json:"skipped_under_target"`
	SummaryCalls    int     `json:"summarization_api_calls"`
	SummaryErrors   int     `json:"summarization_errors"`
}

// Region is the range of turns that a summary replaces: from Start to before End, or -1
// and -1 for none.
type Region struct {
	Start int `json:"start_idx"`
	End   int `json:"end_idx"`
	Turns int `json:"turns_count"`
}

// ErrNoSummary is wrapped by the error of Compress when every request for a summary
// failed.
var ErrNoSummary = errors.New("no summary")

// Compress returns a compressed copy of a trajectory. It returns the given turns if they
// are within the target, if all of them are protected, and with an error. The error wraps
// ErrNoSummary or is that of ctx or of Options.Validate.
//
// If s is nil the summary is a Digest. Secrets are redacted in the text for the summarizer
// and in the summary, but not in the turns that are kept. Compress is safe for concurrent
// use if the summarizer is.
func Compress(ctx context.Context, turns []Turn, o Options, s plan.Summarizer) ([]Turn, Metrics, error) {
	if err := o.Validate(); err != nil {
		return turns, Metrics{}, err
	}
	costs := make([]int, len(turns))
	total := 0
	for i, t := range turns {
		costs[i] = o.count(t.Value)
		total += costs[i]
	}
	m := Metrics{
		OriginalTokens: total, CompressedTokens: total, Ratio: 1, OriginalTurns: len(turns), CompressedTurns: len(turns),
		Region: Region{-1, -1, 0},
	}
	if total <= o.Target {
		m.UnderTarget = true
		return turns, m, nil
	}
	m.StillOver = true
	start, end := o.region(turns, costs, total)
	if start >= end {
		return turns, m, nil
	}
	summary, err := o.summary(ctx, turns, start, end, s, &m)
	if err != nil {
		return turns, m, err
	}
	out := o.head(turns[:start])
	out = append(out, Turn{Human, summary})
	out = append(out, turns[end:]...)

	m.CompressedTokens = 0
	for _, t := range out {
		m.CompressedTokens += o.count(t.Value)
	}
	m.TokensSaved = total - m.CompressedTokens
	m.Ratio = math.Round(float64(m.CompressedTokens)/float64(total)*1e4) / 1e4
	m.CompressedTurns = len(out)
	m.TurnsRemoved = len(turns) - len(out)
	m.Region = Region{start, end, end - start}
	m.Compressed, m.StillOver = true, m.CompressedTokens > o.Target
	return out, m, nil
}

func (o *Options) count(text string) int {
	switch {
	case text == "":
		return 0
	case o.Count != nil:
		return o.Count(text)
	}
	return utf8.RuneCountInString(text) / 4
}

// head returns a copy of the turns before the summary, with the notice.
func (o *Options) head(turns []Turn) []Turn {
	out := slices.Clone(turns)
	for i := range out {
		if out[i].From == System {
			out[i].Value += o.notice()
		}
	}
	return out
}

// notice returns the text to append to a system turn.
func (o *Options) notice() string {
	if o.Notice == "" {
		return ""
	}
	return "\n\n" + o.Notice
}

// Prefix begins every summary.
const Prefix = "[CONTEXT SUMMARY]:"

// summary returns a summary of turns[start:end] and counts the requests for it in m.
func (o *Options) summary(ctx context.Context, turns []Turn, start, end int, s plan.Summarizer, m *Metrics) (string, error) {
	if s == nil {
		return prefixed(Digest(turns[start:end], 4*o.SummaryTokens)), nil
	}
	var text string
	var err error
	request := o.request(turns, start, end)
	for range o.Attempts {
		m.SummaryCalls++
		if text, err = s.Summarize(ctx, request); err == nil {
			text, _ = redact.Redact(text)
			return prefixed(text), nil
		}
		m.SummaryErrors++
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	if o.Fallback != "" {
		return prefixed(o.Fallback), nil
	}
	return "", fmt.Errorf("%w after %d attempts: %w", ErrNoSummary, o.Attempts, err)
}

// prefixed returns a summary that begins with Prefix exactly once.
func prefixed(summary string) string {
	summary = strings.TrimSpace(summary)
	for strings.HasPrefix(summary, Prefix) {
		summary = strings.TrimSpace(summary[len(Prefix):])
	}
	if summary == "" {
		return Prefix
	}
	return Prefix + " " + summary
}
