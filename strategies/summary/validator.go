package summary

import (
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Code says why an answer was rejected.
type Code string

// The codes of a Rejection.
const (
	// CodeEmpty: nothing was said, or nothing but that there is nothing to say.
	CodeEmpty Code = "empty"
	// CodeRefusal: the model, or a filter, declined.
	CodeRefusal Code = "refusal"
	// CodeErrorText: an error message in the place of an answer.
	CodeErrorText Code = "error_text"
	// CodeCutOff: the answer ends before its end.
	CodeCutOff Code = "cut_off"
	// CodeUnfinishedThought: thoughts that never led to an answer.
	CodeUnfinishedThought Code = "unfinished_thought"
	// CodeMissingSections: sections that were asked for are not there, or empty.
	CodeMissingSections Code = "missing_sections"
	// CodeTooLarge: larger than allowed, or not smaller than what it replaces.
	CodeTooLarge Code = plan.FailureTooLarge
	// CodeWrongScript: written in a script that the user does not write.
	CodeWrongScript Code = "wrong_script"
	// CodeToolSyntax: markup of a tool call instead of, or within, the answer.
	CodeToolSyntax Code = "tool_syntax"
	// CodeInventedQuote: words attributed to the user that nobody said.
	CodeInventedQuote Code = "invented_quote"
)

// Rejection is why an answer is no summary. It holds nothing of the conversation or of
// the answer, so it can be stored and logged.
type Rejection struct {
	Code Code
	// Detail says more, with numbers and configured titles alone; it may be empty.
	Detail string
}

// Error makes a Rejection an error.
func (r *Rejection) Error() string {
	if r.Detail == "" {
		return "summary rejected: " + string(r.Code)
	}
	return "summary rejected: " + string(r.Code) + ": " + r.Detail
}

// Answer is what a model answered.
type Answer struct {
	Text string
	// FinishReason as the provider gives it, empty where it is not known.
	FinishReason string
	// Refusal is the field of that name, empty for none.
	Refusal string
}

// Gate decides whether an answer may become a summary. It is a plain value; its
// methods are pure and safe for concurrent use.
type Validator struct {
	// Sections an answer has to have, Optional ones excepted; nil for none, as with a
	// custom prompt.
	Sections []Section
	// Max is how many tokens an answer may have; 0 is no limit.
	Max chat.Tokens
	// Counter counts the tokens of answers.
	Counter tokens.Counter
	// Evidence is of all messages that are to be replaced.
	Evidence *SourceIndex
	// StrictQuotes rejects an answer for a single invented quotation. Otherwise those
	// that make up at most a quarter of at least four, outside of the active task, are
	// taken out: models that retell a long conversation slip in some letters.
	StrictQuotes bool
}

// Accepted is an answer that passed.
type Accepted struct {
	// Text is the answer without thoughts, frame and secrets, and without quotations
	// that nobody said.
	Text string
	// Redacted counts the secrets that the model wrote.
	Redacted redact.Found
	// Unquoted is how many quotations were taken out.
	Unquoted int
}

// Check returns why an answer is rejected, nil if it is not.
func (g Validator) Check(a Answer) *Rejection {
	_, r := g.Read(a)
	return r
}

// Read returns what an answer is worth: an accepted text, or why there is none. Secrets are
// redacted and never a reason to reject.
func (g Validator) Read(a Answer) (Accepted, *Rejection) {
	if r := g.finish(a); r != nil {
		return Accepted{}, r
	}
	text, thinking := withoutThoughts(a.Text)
	if thinking {
		return Accepted{}, &Rejection{Code: CodeUnfinishedThought}
	}
	text = withoutWrapper(frame.Body(text))
	text, redacted := redact.Redact(text)
	for _, check := range []func(string) *Rejection{
		g.empty, errorText, refusal, toolSyntax, g.endsWell(a), g.sections, g.size, g.script,
	} {
		if r := check(text); r != nil {
			return Accepted{}, r
		}
	}
	text, dropped, r := g.quotes(text)
	if r != nil {
		return Accepted{}, r
	}
	return Accepted{Text: text, Redacted: redacted, Unquoted: dropped}, nil
}

// evidence returns what there is, none without any.
func (g Validator) evidence() *SourceIndex {
	if g.Evidence == nil {
		return &SourceIndex{}
	}
	return g.Evidence
}

// allows reports whether words of a quotation may be in an answer: said by the user,
// or by anybody where it is not said in the active task that they are his. A slip does
// no harm there, for Assemble puts the very words in its place.
func (e *SourceIndex) allows(q userQuote, words string) bool {
	switch e.find(words) {
	case withUser:
		return true
	case withOthers:
		if !q.active || !q.claimed {
			return true
		}
	case nowhere:
	}
	return q.active && e.nearly(words)
}

// finish judges what the provider says about the answer.
func (g Validator) finish(a Answer) *Rejection {
	if strings.TrimSpace(a.Refusal) != "" {
		return &Rejection{Code: CodeRefusal, Detail: "the answer has a refusal"}
	}
	switch strings.ToLower(a.FinishReason) {
	case "length", "max_tokens", "model_length", "incomplete":
		return &Rejection{Code: CodeCutOff, Detail: "finish reason length"}
	case "content_filter", "safety", "refusal", "prohibited_content", "recitation", "blocklist":
		return &Rejection{Code: CodeRefusal, Detail: "finish reason of a filter"}
	case "tool_calls", "function_call", "tool_use":
		return &Rejection{Code: CodeToolSyntax, Detail: "finish reason of a tool call"}
	}
	return nil
}

// ended reports a finish reason that says the model was done.
func ended(reason string) bool {
	switch strings.ToLower(reason) {
	case "stop", "end_turn", "stop_sequence", "eos", "completed":
		return true
	}
	return false
}

// fewLetters is what an answer has to have when it replaces much.
const (
	fewLetters              = 40
	much        chat.Tokens = 2000
	saysNothing             = "no summary available"
)

func (g Validator) empty(text string) *Rejection {
	words := wordsOf(text)
	if words == "" || words == saysNothing || words == "none" || words == "n a" {
		return &Rejection{Code: CodeEmpty}
	}
	if n := len(words); n < fewLetters && g.evidence().Tokens() >= much {
		return &Rejection{Code: CodeEmpty, Detail: strconv.Itoa(n) + " letters for " + chat.Thousands(g.evidence().Tokens()) + " tokens"}
	}
	return nil
}

// sections finds those that are missing, or have nothing below their heading.
func (g Validator) sections(text string) *Rejection {
	var missing []string
	filled, required := 0, 0
	parts := partsOf(text, g.Sections)
	for _, s := range g.Sections {
		body := ""
		for _, p := range parts[1:] {
			if body == "" && sameTitle(p.title, s.Title) {
				body = strings.TrimSpace(text[p.body:p.end])
			}
		}
		if !s.Optional {
			required++
			if body == "" {
				missing = append(missing, s.Title)
			}
		}
		if w := wordsOf(body); w != "" && w != "none" && w != "n a" {
			filled++
		}
	}
	if len(missing) > 0 {
		return &Rejection{Code: CodeMissingSections, Detail: "missing or empty: " + strings.Join(missing, ", ")}
	}
	if required >= 3 && filled == 0 {
		return &Rejection{Code: CodeEmpty, Detail: "no section says anything"}
	}
	return nil
}

func (g Validator) size(text string) *Rejection {
	n := g.Counter.Text(text)
	if g.Max > 0 && n > g.Max {
		return &Rejection{Code: CodeTooLarge, Detail: strconv.FormatInt(int64(n), 10) + " tokens, " + strconv.FormatInt(int64(g.Max), 10) + " allowed"}
	}
	if old := g.evidence().Tokens(); old > 0 && n >= old {
		return &Rejection{Code: CodeTooLarge, Detail: strconv.FormatInt(int64(n), 10) + " tokens in place of " + strconv.FormatInt(int64(old), 10)}
	}
	return nil
}

func (g Validator) script(text string) *Rejection {
	got, wrong := wrongScript(text, g.evidence().votes)
	if !wrong {
		return nil
	}
	detail := "written in " + got.String()
	if want := g.evidence().Script(); want != "" {
		detail += ", the user writes in " + want
	}
	return &Rejection{Code: CodeWrongScript, Detail: detail}
}

// unquoted stands in the place of a quotation that was taken out.
const unquoted = "(quotation left out: it is not in the messages)"

// quotes checks what is attributed to the user.
func (g Validator) quotes(text string) (string, int, *Rejection) {
	e := g.evidence()
	var invented []string
	checked := map[string]bool{}
	for _, q := range userQuotes(text, g.Sections) {
		ps := pieces(q.text)
		if len(ps) == 0 {
			continue
		}
		if checked[q.text] && !q.active {
			continue
		}
		checked[q.text] = true
		for _, p := range ps {
			if e.allows(q, p) {
				continue
			}
			if q.active {
				return "", 0, &Rejection{Code: CodeInventedQuote, Detail: "in the active task"}
			}
			invented = append(invented, q.text)
			break
		}
	}
	if n := len(invented); n > 0 && (g.StrictQuotes || 4*n > len(checked)) {
		return "", 0, &Rejection{Code: CodeInventedQuote, Detail: strconv.Itoa(n) + " of " + strconv.Itoa(len(checked)) + " quotations of the user"}
	}
	for _, q := range invented {
		for _, m := range [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"„", "”"}, {"«", "»"}, {"「", "」"}, {"『", "』"}, {"＂", "＂"}} {
			text = strings.ReplaceAll(text, m[0]+q+m[1], unquoted)
		}
	}
	return text, len(invented), nil
}
