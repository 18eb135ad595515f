package toolresult

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// ServiceFailure returns what the answer of a tool that is no shell says of its failure: a status, its first line, an
// exception or, if it is an object, its keys; "" for none. What the call asked for, as to decline something, is none.
func ServiceFailure(tool string, arguments []argument.Field, answer string) string {
	answer = strings.TrimSpace(answer)
	asked := func(verb string) bool { // by the name of the tool, or in what it was given
		return slices.ContainsFunc(toolname.Words(tool), func(w string) bool { return len(w) > 3 && strings.EqualFold(text.Head(w, 5), text.Head(verb, 5)) }) ||
			slices.ContainsFunc(arguments, func(f argument.Field) bool {
				return prose.ContainsWord(strings.ToLower(f.Value), strings.ToLower(verb))
			})
	}
	if strings.HasPrefix(answer, "{") {
		return objectFailure(answer, !toolname.Looks(tool), asked)
	}
	first := text.Head(prose.FirstLine(answer), prose.MaxLine)
	lines := []string{first}
	if strings.Contains(answer, "Traceback (most recent call last)") { // it ends with what was raised
		lines = append(lines, text.Head(answer[strings.LastIndexByte(answer, '\n')+1:], prose.MaxLine))
	}
	for _, l := range lines {
		if exception().MatchString(l) {
			return l
		}
	}
	if statusLine().MatchString(first) {
		return first
	}
	if m := unserved().FindStringSubmatch(first); m != nil && !toolname.Looks(tool) && (m[1] == "" || !asked(m[1])) {
		return first
	}
	return ""
}

// objectFailure returns what an object says of a failure; acts: its status is that of the call, not of what it
// looked for.
func objectFailure(answer string, acts bool, asked func(string) bool) string {
	var object map[string]any
	if len(answer) > argument.MaxJSON || !unsuccessful().MatchString(answer) || json.Unmarshal([]byte(answer), &object) != nil {
		return ""
	}
	failed := false
	_, says := object["message"] // else a code may be that of a booking
	for key, v := range object {
		switch key = strings.ToLower(strings.ReplaceAll(key, "_", "")); v := v.(type) {
		case bool:
			failed = failed || !v && (key == "ok" || key == "success" || key == "succeeded") || v && (key == "iserror" || key == "error")
		case float64:
			isStatus := acts && (key == "status" || key == "code" && says || strings.HasSuffix(key, "statuscode") || key == "httpcode" || key == "httpstatus")
			failed = failed || isStatus && v >= 400 && v < 600 || v != 0 && (key == "exitcode" || key == "returncode" || key == "exitstatus")
		case string:
			failed = failed || acts && (key == "status" || key == "state" || key == "result") && failedStatus[strings.ToLower(v)] && !asked(v)
		}
	}
	if !failed {
		return ""
	}
	for _, key := range []string{"message", "error", "reason", "detail", "description", "stderr", "output"} {
		if says, ok := object[key].(string); ok && strings.TrimSpace(says) != "" {
			return prose.OneLine(text.Head(says, prose.MaxLine))
		}
	}
	return prose.OneLine(text.Head(answer, prose.MaxLine))
}

var (
	// statusLine begins an answer with a status of HTTP, exception one with what was raised.
	statusLine = text.Pattern(`(?i)\A\W{0,3}(?:(?:HTTP(?:/[\d.]+)?|status(?: code)?|error)[ :]+[45]\d\d\b|[45]\d\d\b[ :,-]*(?:bad (?:request|gateway)|unauthorized|payment required|forbidden|not (?:found|acceptable|implemented)|` +
		`method not allowed|(?:request|gateway) time-?out|conflict|gone|precondition|(?:content|payload|request entity) too large|unsupported media|unprocessable|locked|failed dependency|too many requests|` +
		`unavailable for legal|internal server error|service unavailable|insufficient storage)\b)`)
	exception = text.Pattern(`\A(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)\b(?::|$)`)
	// unserved is the first line of what a service answers that did nothing, with its verb.
	unserved = text.Pattern(`(?i)\A\W{0,3}(?:[\w ,'"-]{0,60}?\b(failed|rejected|denied|declined|refused)(?:[:.!,]|$| by | with | because | due )|time-?out\b|timed out\b|unauthori[sz]ed\b|forbidden\b|unable to |could ?n(?:o|['’])t |access denied|rate limit|quota exceeded|too many requests)`)
	// unsuccessful are the keys and values of an object that say that a call did nothing.
	unsuccessful = text.Pattern(`(?i)"(?:ok|success|succeeded|is_?error|errors?|status|state|(?:status|http|exit|return)_?(?:code|status)|code|result)"\s*:`)
	failedStatus = text.Set(`failed failure error declined rejected denied refused`)
)
