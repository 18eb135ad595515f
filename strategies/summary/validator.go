package summary

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Code is the reason for a rejection.
type Code string

// The codes of a Rejection.
const (
	// CodeEmpty: no content.
	CodeEmpty Code = "empty"
	// CodeRefusal: the model, or a filter, declined.
	CodeRefusal Code = "refusal"
	// CodeErrorText: an error message in the place of an answer.
	CodeErrorText Code = "error_text"
	// CodeCutOff: the answer is incomplete.
	CodeCutOff Code = "cut_off"
	// CodeUnfinishedThought: reasoning without an end.
	CodeUnfinishedThought Code = "unfinished_thought"
	// CodeMissingSections: sections that are not optional are missing or empty.
	CodeMissingSections Code = "missing_sections"
	// CodeRepeated: the same words under all headings.
	CodeRepeated Code = "repeated"
	// CodeForeignSections: more headings that were not asked for than were.
	CodeForeignSections Code = "foreign_sections"
	// CodeTooLarge: larger than allowed, or no smaller than its source.
	CodeTooLarge Code = plan.FailureTooLarge
	// CodeWrongScript: written in a script that the user does not use.
	CodeWrongScript Code = "wrong_script"
	// CodeToolSyntax: markup of a tool call instead of, or within, the answer.
	CodeToolSyntax Code = "tool_syntax"
	// CodeInventedQuote: words attributed to the user that occur in no message.
	CodeInventedQuote Code = "invented_quote"
)

// Rejection describes why an answer is not accepted as a summary. It holds no content of
// the conversation or of the answer, so it can be stored and logged.
type Rejection struct {
	Code Code
	// Detail adds numbers and section titles; it may be empty.
	Detail string
}

// Error implements error.
func (r *Rejection) Error() string {
	if r.Detail == "" {
		return "summary rejected: " + string(r.Code)
	}
	return "summary rejected: " + string(r.Code) + ": " + r.Detail
}

// Validator decides whether an answer may become a summary. It is a plain value and, without
// Secrets, safe for concurrent use.
type Validator struct {
	// Sections are the sections that were asked for; nil for a custom prompt.
	Sections []Section
	// Max is the token limit of an answer; 0 is no limit.
	Max chat.Tokens
	// Sources indexes the messages that the summary replaces.
	Sources *SourceIndex
	// Secrets are those of the messages; nil for none. Those of the answer are added, so that
	// what is stored beside it does not show them either.
	Secrets *redact.Secrets
}

// Accepted is an answer that passed.
type Accepted struct {
	// Text is the answer without thoughts, delimiters, secrets and invented quotations.
	Text string
	// Redacted counts the secrets in the answer.
	Redacted redact.Found
	// Unquoted counts the invented quotations that were replaced.
	Unquoted int
}

// Read returns the accepted text of an answer, or why it is rejected. Secrets are redacted
// and never a reason to reject.
func (g Validator) Read(a StoredAnswer) (Accepted, *Rejection) {
	if r := checkFinish(a.FinishReason); r != nil {
		return Accepted{}, r
	}
	answer := text.WithoutHidden(a.Text)
	for range 2 { // thoughts may stand around a wrapper and in it
		var thinking bool
		if answer, thinking = withoutThoughts(answer); thinking {
			return Accepted{}, &Rejection{Code: CodeUnfinishedThought}
		}
		answer = withoutWrapper(frame.Body(answer))
	}
	secrets := g.Secrets
	if secrets == nil {
		secrets = &redact.Secrets{}
	}
	answer, redacted := secrets.Redact(answer)
	for _, check := range []func(string) *Rejection{errorText, toolSyntax} { // before what shows them is made plain
		if r := check(answer); r != nil {
			return Accepted{}, r
		}
	}
	answer = g.Sources.clean(answer)
	for _, check := range []func(string) *Rejection{
		g.checkEmpty, refusal, checkEnd(a.FinishReason), g.checkSections, g.checkRepetition, g.checkSize, g.checkScript,
	} {
		if r := check(answer); r != nil {
			return Accepted{}, r
		}
	}
	answer, dropped, r := g.checkQuotes(answer)
	if r != nil {
		return Accepted{}, r
	}
	return Accepted{Text: answer, Redacted: redacted, Unquoted: dropped}, nil
}

// checkFinish checks a finish reason.
func checkFinish(reason string) *Rejection {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length", "incomplete":
		return &Rejection{Code: CodeCutOff, Detail: "finish reason length"}
	case "content_filter", "safety", "refusal", "prohibited_content", "recitation", "blocklist":
		return &Rejection{Code: CodeRefusal, Detail: "finish reason of a filter"}
	case "tool_calls", "function_call", "tool_use":
		return &Rejection{Code: CodeToolSyntax, Detail: "finish reason of a tool call"}
	}
	return nil
}

// isComplete reports whether a finish reason means that the answer is complete.
func isComplete(reason string) bool {
	switch strings.ToLower(reason) {
	case "stop", "end_turn", "stop_sequence", "eos", "completed":
		return true
	}
	return false
}

// An answer needs fewLetters when it replaces at least much tokens.
const (
	minLetters                  = 40
	largeSource     chat.Tokens = 2000
	noSummaryPhrase             = "no summary available"
)

func (g Validator) checkEmpty(text string) *Rejection {
	words := wordsOf(text)
	if words == "" || words == noSummaryPhrase || words == "none" || words == "n a" {
		return &Rejection{Code: CodeEmpty}
	}
	if n := len(words); n < minLetters && g.Sources.Tokens() >= largeSource {
		return &Rejection{Code: CodeEmpty, Detail: strconv.Itoa(n) + " letters for " + chat.Thousands(g.Sources.Tokens()) + " tokens"}
	}
	return nil
}

// checkSections checks that all sections but optional ones are present and not empty.
func (g Validator) checkSections(text string) *Rejection {
	var missing []string
	filled := 0
	parts := splitSections(text, g.Sections)
	for _, s := range g.Sections {
		body := ""
		for i, p := range parts {
			if i == 0 || body != "" || !sameTitle(p.title, s.Title) {
				continue
			}
			end := p.end
			for _, below := range parts[i+1:] { // headings within the section
				if below.level <= p.level || slices.ContainsFunc(g.Sections, func(s Section) bool { return sameTitle(below.title, s.Title) }) {
					break
				}
				end = below.end
			}
			body = strings.TrimSpace(text[p.body:end])
		}
		if body == "" && !s.Optional {
			missing = append(missing, s.Title)
		}
		if w := wordsOf(body); w != "" && w != "none" && w != "n a" {
			filled++
		}
	}
	if len(missing) > 0 {
		return &Rejection{Code: CodeMissingSections, Detail: "missing or empty: " + strings.Join(missing, ", ")}
	}
	if len(g.Sections) > 0 && filled == 0 {
		return &Rejection{Code: CodeEmpty, Detail: "no section says anything"}
	}
	return nil
}

// checkRepetition rejects an answer whose headings, but for one at most, have the same text, which
// may be a longer way to say none, and one that has taken its headings from the material. It
// compares structure alone, so that it holds for every language.
func (g Validator) checkRepetition(answer string) *Rejection {
	const few = 3
	headings, foreign, same, most := 0, 0, map[string]int{}, ""
	for _, p := range splitSections(answer, g.Sections)[1:] {
		if p.level <= 2 && !slices.ContainsFunc(g.Sections, func(s Section) bool { return sameTitle(p.title, s.Title) }) {
			foreign++
		}
		body := wordsOf(answer[p.body:p.end])
		if body == "" || body == "none" || body == "n a" {
			continue
		}
		headings++
		if same[body]++; same[body] > same[most] {
			most = body
		}
	}
	others := headings - same[most]
	switch {
	case headings > few && others == 0, headings > few+1 && others == 1 && len(most) >= minLetters:
		return &Rejection{Code: CodeRepeated, Detail: strconv.Itoa(same[most]) + " of " + strconv.Itoa(headings) + " headings"}
	case len(g.Sections) > 0 && foreign > len(g.Sections):
		return &Rejection{Code: CodeForeignSections, Detail: strconv.Itoa(foreign) + " headings"}
	}
	return nil
}

func (g Validator) checkSize(text string) *Rejection {
	n := tokens.Chars4{}.Text(text)
	if g.Max > 0 && n > g.Max {
		return &Rejection{Code: CodeTooLarge, Detail: strconv.FormatInt(int64(n), 10) + " tokens, " + strconv.FormatInt(int64(g.Max), 10) + " allowed"}
	}
	if old := g.Sources.Tokens(); old > 0 && n >= old {
		return &Rejection{Code: CodeTooLarge, Detail: strconv.FormatInt(int64(n), 10) + " tokens in place of " + strconv.FormatInt(int64(old), 10)}
	}
	return nil
}

func (g Validator) checkScript(text string) *Rejection {
	got, wrong := wrongScript(text, g.Sources.userScripts)
	if !wrong {
		return nil
	}
	detail := "written in " + got.String()
	if want := g.Sources.Script(); want != "" {
		detail += ", the user writes in " + want
	}
	return &Rejection{Code: CodeWrongScript, Detail: detail}
}

// unquoted replaces an invented quotation.
const unquoted = "(quotation left out: it is not in the messages)"

// notTheirs stands behind a quotation whose words are in no message of the user but in
// another.
const notTheirs = " (not in a message of the user)"

// checkQuotes checks the quotations of the user. Invented ones outside of the active task are
// replaced if they are at most a quarter of all, as models that retell a long conversation
// change some letters; otherwise the answer is rejected. Words without quotation marks that
// are said to be the user's are marked instead.
func (g Validator) checkQuotes(answer string) (string, int, *Rejection) {
	var spans [][2]int
	var texts []string
	edit := func(start, end int, by string) { spans, texts = append(spans, [2]int{start, end}), append(texts, by) }
	invented, checked, few := map[string]bool{}, map[string]bool{}, 0
	for _, q := range g.Sources.userQuotes(answer, g.Sections) {
		counts := !q.plain && !q.loose && len(quotedPhrases(q.text)) > 0
		if counts {
			checked[q.text] = true
		}
		switch {
		case g.Sources.has(q):
			switch {
			case !g.Sources.misattributes(q):
			case q.plain:
				edit(q.start, q.start, notQuoted)
			case !strings.HasPrefix(answer[q.end:], notTheirs):
				edit(q.end, q.end, notTheirs)
			}
		case q.active && q.attributed, q.active && counts:
			return "", 0, &Rejection{Code: CodeInventedQuote, Detail: "in the active task"}
		case q.plain:
			edit(q.start, q.start, notQuoted)
		default:
			edit(q.start, q.end, unquoted)
			if counts {
				invented[q.text] = true
			} else {
				few++
			}
		}
	}
	if n := len(invented); n > 0 && 4*n > len(checked) {
		return "", 0, &Rejection{Code: CodeInventedQuote, Detail: strconv.Itoa(n) + " of " + strconv.Itoa(len(checked)) + " quotations of the user"}
	}
	return text.ReplaceFolded(answer, nil, spans, texts), len(invented) + few, nil
}
