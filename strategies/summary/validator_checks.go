package summary

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// withoutWrapper removes a code fence around the whole answer.
func withoutWrapper(s string) string {
	first, rest, ok := strings.Cut(s, "\n")
	open := fenceAfter("", first)
	if !ok || open == "" {
		return s
	}
	if kind := strings.ToLower(strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(first), "`~"))); kind != "" && kind != "markdown" && kind != "md" && kind != "text" {
		return s
	}
	at := strings.LastIndexByte(rest, '\n') + 1
	if strings.TrimSpace(rest[at:]) != open || strings.Contains(rest[:at], "\n"+open) {
		return s
	}
	return text.Trim(rest[:at])
}

// shortAnswer is the maximum size, in bytes, of an answer that is checked for errors and
// refusals; longer ones are summaries that begin like one.
const shortAnswer = 700

var (
	errorStart = text.Pattern(`(?i)^[\[("'*\s]*(?:(?:an? )?(?:internal |unexpected |server |api |http |network |connection |timeout |runtime |fatal )*(?:error|exception)\b\s*(?:[:\])(]|\d{3}|occurred|generating|while (?:generating|summarizing|calling|processing)|code:?\s*\d)|` +
		`traceback \(most recent|http/?\s?\d|[45]\d\d (?:internal|bad|service|gateway|too many|not found|unauthorized|forbidden|error)|internal server error|bad gateway|service unavailable|gateway time-?out|too many requests|` +
		`rate limit (?:exceeded|reached|error)|request (?:failed|timed out|too large)(?:[.:!]| with|$)|upstream (?:connect|request)|connection (?:refused|reset|timed out)(?:[.:!]| by|$)|failed to (?:generate|summarize|fetch)|` +
		`[^.\n]{0,40}context length[^.\n]{0,30}exceed|quota exceeded|insufficient_quota|overloaded(?:_error|[.:!]|$)|invalid api key|unauthorized(?:[.:!]|$)|panic:|(?:sorry, )?(?:something went wrong|an error occurred))`)
	errorWhole = text.Pattern(`(?is)^\s*(?:<!doctype html|<html[\s>]|<\?xml|\{\s*"(?:error|errors|detail|fault)"\s*:|\{\s*"(?:code|status|message|type)"\s*:\s*(?:[45]\d\d|"error"))`)
	// refusals matches the start of a short answer, in the most common languages.
	refusals = text.Pattern(`(?i)^[\s*_"'>]*(?:` +
		`i(?:['’]m| am)(?: very| really| so)? (?:sorry|unable|not able)|(?:i(?:['’]m| am) )?sorry,? (?:but )?i|(?:unfortunately,? )?i (?:can(?:['’]t|not| not)|won['’]t|will not|am not able to)\b[^.\n]{0,30}\b(?:help|assist|provide|summari[sz]e|comply|fulfil|continue|process|generate|create|discuss|engage|share|write|do (?:that|this)|with (?:that|this))|` +
		`i (?:must|have to) decline|as an ai\b|i apologi[sz]e|` +
		`es tut mir (?:sehr )?leid|leider kann ich|ich kann (?:dir|ihnen|dabei|leider|diese[rn]? (?:anfrage|bitte))|` + // German
		`lo siento|no puedo|je suis désolée?|désolée?,|je ne peux pas|mi dispiace|non posso|sinto muito|desculpe|não posso|` + // Spanish, French, Italian, Portuguese
		`извините|к сожалению,? я|я не могу|抱歉|对不起|對不起|很遗憾|我无法|我不能|我無法|申し訳|すみません|죄송|آسف|عذرا)`) // Russian, Chinese, Japanese, Korean, Arabic
)

func errorText(text string) *Rejection {
	if errorWhole().MatchString(text) || len(text) <= shortAnswer && !strings.Contains(text, "\n#") && errorStart().MatchString(text) {
		return &Rejection{Code: CodeErrorText}
	}
	return nil
}

func refusal(text string) *Rejection {
	if len(text) <= shortAnswer && !strings.Contains(text, "\n#") && refusals().MatchString(text) {
		return &Rejection{Code: CodeRefusal}
	}
	return nil
}

var (
	toolMarkup = text.Pattern(`(?i)</?(?:tool_calls?|function_calls?|tool_use|tool_response|invoke|antml:[a-z_]+|function_results?)(?:\s[^<>]*)?/?>|<function=|<parameter=|<[|｜][^<>|｜\n]{1,60}[|｜]>|\[/?TOOL_CALLS?\]`)
	toolJSON   = text.Pattern(`(?m)^\s*(?:\[\s*)?\{\s*"(?:function_call|tool_calls|tool_call|tool_uses?)"\s*:|^\s*(?:\[\s*)?\{\s*"(?:name|function|tool|tool_name|recipient_name)"\s*:\s*"[^"\n]{1,100}"\s*,\s*"(?:arguments|parameters|args|input|tool_input)"\s*:`)
)

// toolSyntax rejects markup of calls outside of code, and an answer that is nothing but a
// call, even within a fence.
func toolSyntax(text string) *Rejection {
	bare := outsideCode(text)
	if toolMarkup().MatchString(bare) || toolJSON().MatchString(bare) {
		return &Rejection{Code: CodeToolSyntax}
	}
	if first, rest, ok := strings.Cut(text, "\n"); ok && fenceAfter("", first) != "" {
		if at := toolJSON().FindStringIndex(rest); at != nil && strings.TrimSpace(rest[:at[0]]) == "" {
			return &Rejection{Code: CodeToolSyntax, Detail: "the answer is a call"}
		}
	}
	return nil
}

// outsideCode returns a text without its fences and inline code.
func outsideCode(text string) string {
	var b strings.Builder
	for line := range outsideFences(text) {
		for i, s := range strings.Split(line, "`") {
			if i%2 == 0 {
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

// checkEnd returns a check of the end of an answer, for finish reasons that do not tell
// whether it is complete.
func checkEnd(reason string) func(string) *Rejection {
	return func(text string) *Rejection {
		if isComplete(reason) {
			return nil
		}
		if openFence(text) != "" {
			return &Rejection{Code: CodeCutOff, Detail: "ends within code"}
		}
		line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
		if isOpenEnd(line) {
			return &Rejection{Code: CodeCutOff, Detail: "ends within a sentence"}
		}
		return nil
	}
}

// unfinishedWords are words that no sentence ends with.
var unfinishedWords = []string{
	"the", "a", "an", "and", "or", "of", "to", "with", "for", "from", "in", "by", "that", "which", "is", "are", "was", "were", "because", "but", "as", "at", "into",
	"der", "die", "das", "und", "oder", "mit", "für", "von", "ein", "eine", "le", "la", "les", "et", "de", "el", "los", "y", "que", "и", "в", "на", "с", "что",
}

// isOpenEnd reports whether a last line is incomplete: it ends with an open bracket, a comma
// or a word of unfinishedWords, or is an empty heading or list item.
func isOpenEnd(line string) bool {
	if line == "" || strings.Trim(line, "-*+# ") == "" && line != "---" && line != "***" {
		return line != ""
	}
	last, _ := utf8.DecodeLastRuneInString(line)
	if strings.ContainsRune(",([{、，（", last) {
		return true
	}
	at := strings.LastIndexFunc(line, func(r rune) bool { return !unicode.IsLetter(r) })
	if at < 0 || !unicode.IsSpace(rune(line[at])) {
		return false
	}
	return strings.Count(line, " ") >= 3 && slices.ContainsFunc(unfinishedWords, func(w string) bool { return strings.EqualFold(w, line[at+1:]) })
}
