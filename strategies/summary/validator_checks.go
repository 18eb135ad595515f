package summary

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// checkFinish checks a finish reason.
func checkFinish(reason string) *rejection {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length", "incomplete":
		return &rejection{CodeCutOff, "finish reason length"}
	case "content_filter", "safety", "refusal", "prohibited_content", "recitation", "blocklist":
		return &rejection{CodeRefusal, "finish reason of a filter"}
	case "tool_calls", "function_call", "tool_use":
		return &rejection{CodeToolSyntax, "finish reason of a tool call"}
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

// shortAnswer is the maximum size, in bytes, of an answer without headings that is checked for
// errors and refusals. With headings, or if it is longer, it is a summary that begins like one.
const shortAnswer = 700

var (
	errorStart = regexp.MustCompile(`(?i)^[\[("'*\s]*(?:(?:an? )?(?:internal |unexpected |server |api )*(?:error|exception)\b\s*(?:[:\])(]|\d{3}|occurred)|traceback \(most recent|http/?\s?\d|[45]\d\d [a-z]|(?:internal server error|bad gateway|service unavailable|too many requests|rate limit|request (?:failed|timed out)|quota exceeded|overloaded|invalid api key|unauthorized|panic:|something went wrong)\b)`)
	errorWhole = regexp.MustCompile(`(?is)^\s*(?:<!doctype html|<html[\s>]|<\?xml|\{\s*"(?:error|errors|detail|fault)"\s*:|\{\s*"(?:code|status|message|type)"\s*:\s*(?:[45]\d\d|"error"))`)
	refusals   = regexp.MustCompile(`(?i)^[\s*_"'>]*(?:i(?:['’]m| am) (?:very |really |so )?(?:sorry|unable)|sorry,? (?:but )?i|(?:unfortunately,? )?i (?:can(?:['’]t|not| not)|won['’]t|must decline)|as an ai\b|i apologi[sz]e|es tut mir leid|leider kann ich|lo siento|no puedo|je suis désolée?|je ne peux pas|mi dispiace|non posso|sinto muito|извините|я не могу|抱歉|对不起|對不起|我无法|我不能|申し訳|죄송|آسف|عذرا)`)
)

func errorText(text string) *rejection {
	if errorWhole.MatchString(text) || isShort(text) && errorStart.MatchString(text) {
		return &rejection{code: CodeErrorText}
	}
	return nil
}

func refusal(text string) *rejection {
	if isShort(text) && refusals.MatchString(text) {
		return &rejection{code: CodeRefusal}
	}
	return nil
}

func isShort(answer string) bool {
	return len(answer) <= shortAnswer && !strings.Contains(answer, "\n#")
}

var (
	toolMarkup = regexp.MustCompile(`(?i)</?(?:tool_calls?|function_calls?|tool_use|tool_response|invoke|antml:[a-z_]+|function_results?)(?:\s[^<>]*)?/?>|<function=|<parameter=|<[|｜][^<>|｜\n]{1,60}[|｜]>|\[/?TOOL_CALLS?\]`)
	toolJSON   = regexp.MustCompile(`(?m)^\s*(?:\[\s*)?\{\s*"(?:function_call|tool_calls?|tool_uses?)"\s*:|^\s*(?:\[\s*)?\{\s*"(?:name|function|tool|tool_name)"\s*:\s*"[^"\n]{1,100}"\s*,\s*"(?:arguments|parameters|args|input|tool_input)"\s*:`)
)

// toolSyntax rejects markup of calls outside of code, and an answer that is nothing but a
// call, even within a fence.
func toolSyntax(text string) *rejection {
	bare := codeIn(text).outside(text)
	if toolMarkup.MatchString(bare) || toolJSON.MatchString(bare) {
		return &rejection{code: CodeToolSyntax}
	}
	if first, rest, ok := strings.Cut(text, "\n"); ok && fenceAfter("", first) != "" {
		if at := toolJSON.FindStringIndex(rest); at != nil && strings.TrimSpace(rest[:at[0]]) == "" {
			return &rejection{CodeToolSyntax, "the answer is a call"}
		}
	}
	return nil
}

// checkEnd returns a check of the end of an answer, for finish reasons that do not say
// whether it is complete.
func checkEnd(reason string) func(string) *rejection {
	return func(text string) *rejection {
		if isComplete(reason) {
			return nil
		}
		if openFence(text) != "" {
			return &rejection{CodeCutOff, "ends within code"}
		}
		if last, _ := utf8.DecodeLastRuneInString(strings.TrimSpace(text)); strings.ContainsRune(",([{、，（", last) {
			return &rejection{CodeCutOff, "ends within a sentence"}
		}
		return nil
	}
}
