package summary

import (
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

// The codes of a rejection.
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
	// CodeMissingSections: hardly any of the sections that were asked for, or many others.
	CodeMissingSections Code = "missing_sections"
	// CodeRepeated: the same words under all headings.
	CodeRepeated Code = "repeated"
	// CodeTooLarge: larger than allowed, or no smaller than its source.
	CodeTooLarge Code = plan.FailureTooLarge
	// CodeWrongScript: written in a script that the user does not use.
	CodeWrongScript Code = "wrong_script"
	// CodeToolSyntax: markup of a tool call instead of, or within, the answer.
	CodeToolSyntax Code = "tool_syntax"
)

// rejection describes why an answer is not accepted as a summary. It holds no content of the
// conversation or of the answer, so it can be stored and logged.
type rejection struct {
	code Code
	// detail adds numbers; it may be empty.
	detail string
}

// validator decides whether an answer may become a summary.
type validator struct {
	// sections are the sections that were asked for; nil for a custom prompt.
	sections []Section
	// max is the token limit of an answer; 0 is no limit.
	max chat.Tokens
	// sources indexes the messages that the summary replaces.
	sources *sourceIndex
	// secrets are those of the messages. Those of the answer are added, so that nothing that
	// is stored beside it shows them either.
	secrets *redact.Secrets
}

// accepted is an answer that passed.
type accepted struct {
	// text is the answer without thoughts, delimiters, secrets and invented quotations; its links
	// name the authors of the messages.
	text string
	// numbered reports that it says which messages it rests on.
	numbered bool
	// redacted counts the secrets in the answer.
	redacted redact.Found
	// dropped counts the parts that were left out because they rest on no message of the user, unquoted the
	// quotations that occur in no message.
	dropped, unquoted int
}

// read returns the accepted text of an answer, or why it is rejected. Secrets are redacted
// and never a reason to reject.
func (g validator) read(a StoredAnswer) (accepted, *rejection) {
	if r := checkFinish(a.FinishReason); r != nil {
		return accepted{}, r
	}
	answer := text.WithoutHidden(a.Text)
	for range 2 { // thoughts may stand around a wrapper and in it
		var thinking bool
		if answer, thinking = withoutThoughts(answer); thinking {
			return accepted{}, &rejection{code: CodeUnfinishedThought}
		}
		answer = withoutWrapper(frame.Body(answer))
	}
	answer, redacted := g.secrets.Redact(answer)
	for _, check := range []func(string) *rejection{errorText, toolSyntax} { // before what shows them is made plain
		if r := check(answer); r != nil {
			return accepted{}, r
		}
	}
	answer = Clean(answer)
	for _, check := range []func(string) *rejection{g.checkEmpty, refusal, checkEnd(a.FinishReason), g.checkSize, g.checkScript} {
		if r := check(answer); r != nil {
			return accepted{}, r
		}
	}
	answer = withoutBlockQuotes(answer)
	r := newReader(g.sources, g.sections, answer)
	if g.sections == nil {
		answer = r.notes(answer)
	} else {
		hs := headingsOf(answer, g.sections)
		found := assignSections(hs, g.sections)
		for _, check := range []func(string, []heading, int) *rejection{g.checkSections, g.checkRepetition} {
			if r := check(answer, hs, found); r != nil {
				return accepted{}, r
			}
		}
		if found >= minSections {
			answer = r.compose(answer, hs)
		} else { // of its headings none is known to be one of the user's
			answer = r.notes(lowered(answer, hs))
		}
	}
	return accepted{text: text.Trim(answer), numbered: r.numbered, redacted: redacted, dropped: r.dropped, unquoted: r.unquoted}, nil
}

// lowered returns an answer whose headings are none of those that a summary has.
func lowered(answer string, hs []heading) string {
	if len(hs) == 0 {
		return answer
	}
	var b strings.Builder
	b.WriteString(answer[:hs[0].start])
	for _, h := range hs {
		b.WriteString("### " + h.title + h.tag + "\n" + answer[h.body:h.end])
	}
	return b.String()
}

// minSections is how many of the sections an answer must have.
const minSections = 2

// An answer needs minLetters when it replaces at least largeSource tokens.
const (
	minLetters              = 40
	largeSource chat.Tokens = 2000
)

func (g validator) checkEmpty(text string) *rejection {
	if isNothing(text) || strings.Trim(text, "#*_->`~ \t\n") == "" {
		return &rejection{code: CodeEmpty}
	}
	if n := len(wordsOf(text)); n < minLetters && g.sources.tokens >= largeSource {
		return &rejection{CodeEmpty, strconv.Itoa(n) + " letters for " + chat.Thousands(g.sources.tokens) + " tokens"}
	}
	return nil
}

// checkSections rejects an answer with hardly any sections: neither two of those that were asked
// for nor about as many headings with something below them. found is the number of those.
func (g validator) checkSections(answer string, hs []heading, found int) *rejection {
	filled, foreign := 0, 0
	for _, h := range hs {
		if !isNothing(answer[h.body:h.end]) {
			filled++
		}
		if h.section < 0 && h.style <= 2 {
			foreign++
		}
	}
	n := len(g.sections)
	switch {
	case found < minSections && (filled < n/2 || filled > 2*n), foreign > 2*n:
		return &rejection{CodeMissingSections, strconv.Itoa(found) + " of " + strconv.Itoa(n) + " headings, " + strconv.Itoa(foreign) + " others"}
	case filled == 0:
		return &rejection{CodeEmpty, "no section says anything"}
	}
	return nil
}

// checkRepetition rejects an answer whose headings, but for one at most, have the same text, which
// may be a longer way to say none.
func (g validator) checkRepetition(answer string, hs []heading, _ int) *rejection {
	const few = 3
	filled, same, most := 0, map[string]int{}, ""
	for _, h := range hs {
		body := wordsOf(withoutTags(answer[h.body:h.end]))
		if isNothing(body) {
			continue
		}
		filled++
		if same[body]++; same[body] > same[most] {
			most = body
		}
	}
	others := filled - same[most]
	if one := others == 1 && len(most) >= minLetters; filled > few+others && (others == 0 || one) {
		return &rejection{CodeRepeated, strconv.Itoa(same[most]) + " of " + strconv.Itoa(filled) + " headings"}
	}
	return nil
}

func (g validator) checkSize(text string) *rejection {
	n := tokens.Chars4{}.Text(text)
	if g.max > 0 && n > g.max {
		return &rejection{CodeTooLarge, strconv.FormatInt(int64(n), 10) + " tokens, " + strconv.FormatInt(int64(g.max), 10) + " allowed"}
	}
	if old := g.sources.tokens; old > 0 && n >= old {
		return &rejection{CodeTooLarge, strconv.FormatInt(int64(n), 10) + " tokens in place of " + strconv.FormatInt(int64(old), 10)}
	}
	return nil
}

func (g validator) checkScript(text string) *rejection {
	got, wrong := wrongScript(text, g.sources.userScripts)
	if !wrong {
		return nil
	}
	detail := "written in " + got.String()
	if want := g.sources.script(); want != "" {
		detail += ", the user writes in " + want
	}
	return &rejection{CodeWrongScript, detail}
}
