package extract

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// wrapped is an output as harnesses and servers of MCP give it: as JSON, with what else they know of it.
type wrapped struct {
	Output   string
	Stdout   string
	Stderr   string
	Content  []struct{ Type, Text string }
	Metadata struct {
		ExitCode int `json:"exit_code"`
		Duration any `json:"duration_seconds"`
	}
	ExitCode  int  `json:"exit_code"`
	ExitCamel int  `json:"exitCode"`
	IsError   bool `json:"isError"`
	// Known, and of no use here.
	Interrupted, IsImage, StructuredContent, TimedOut, Duration any
	Meta                                                        any `json:"_meta"`
	Seconds                                                     any `json:"duration_seconds"`
}

var (
	// wrapper is in an output that may be wrapped.
	wrapper = text.Pattern(`\A\s*\{\s*"(?:output|stdout|stderr|content|exit_code|exitCode|isError|metadata)"\s*:`)
	// trailer is below an output in harnesses that keep a shell open.
	trailer = text.Pattern(`(?:\n\[(?:Current working directory: [^\]\n]*|Python interpreter: [^\]\n]*|(?:The command completed|Command finished) with exit code (\d+)\.?)\])+\s*\z`)
)

// unwrapped returns the output that a result holds, with the exit code of a failure in front of it.
func unwrapped(result string) string {
	if m := trailer().FindStringSubmatchIndex(text.Tail(result, maxLine)); m != nil {
		tail := text.Tail(result, maxLine)
		code := ""
		if m[2] >= 0 {
			code = tail[m[2]:m[3]]
		}
		return withExit(result[:len(result)-len(tail)+m[0]], code)
	}
	if len(result) > maxArguments {
		return result
	}
	if output, ok := fromElements(strings.TrimSpace(result)); ok {
		return output
	}
	if !wrapper().MatchString(result) {
		return result
	}
	var w wrapped
	d := json.NewDecoder(strings.NewReader(result))
	if d.DisallowUnknownFields(); d.Decode(&w) != nil || d.More() {
		return result
	}
	parts := []string{w.Output, w.Stdout, w.Stderr}
	for _, c := range w.Content {
		parts = append(parts, c.Text)
	}
	output := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return strings.TrimSpace(p) == "" }), "\n")
	if w.IsError && failureLine(output, output) == "" {
		output = "Error: " + output
	}
	return withExit(output, strconv.Itoa(cmp.Or(w.Metadata.ExitCode, w.ExitCode, w.ExitCamel)))
}

// outputElements are the elements in which a harness gives the output of a process, and what it knows of it.
var outputElements = text.Set(`status retrieval_status exit_code stdout stderr output error timestamp task_id task_type`)

// fromElements is unwrapped for an output in elements; its status comes first.
func fromElements(result string) (output string, ok bool) {
	if !strings.HasPrefix(result, "<") || !strings.HasSuffix(result, ">") {
		return "", false
	}
	var lines []string
	code := ""
	names, parts := elements(result)
	for i, name := range names {
		switch part := strings.TrimSpace(parts[i]); {
		case name == "" && part != "" || name != "" && !outputElements[name]:
			return "", false
		case name == "exit_code":
			code = part
		case name == "status":
			lines = slices.Insert(lines, 0, "status: "+part)
		case part != "" && (name == "stdout" || name == "stderr" || name == "output" || name == "error"):
			lines = append(lines, part)
		}
	}
	return withExit(strings.Join(lines, "\n"), code), len(names) > 1
}

// withExit puts the exit code of a failure in front of an output.
func withExit(output, code string) string {
	if code == "" || code == "0" {
		return output
	}
	return "exit code " + code + "\n" + output
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

// serviceFailure returns what the answer of a tool that is no shell says of its failure: a status, its first line, an
// exception or, if it is an object, its keys; "" for none. What the call asked for, as to decline something, is none.
func (c *toolCall) serviceFailure(answer string) string {
	answer = strings.TrimSpace(answer)
	asked := func(verb string) bool { // by the name of the tool, or in what it was given
		return slices.ContainsFunc(toolname.Words(c.tool), func(w string) bool { return len(w) > 3 && strings.EqualFold(text.Head(w, 5), text.Head(verb, 5)) }) ||
			slices.ContainsFunc(c.arguments, func(f argument.Field) bool {
				return prose.ContainsWord(strings.ToLower(f.Value), strings.ToLower(verb))
			})
	}
	if strings.HasPrefix(answer, "{") {
		return objectFailure(answer, !toolname.Looks(c.tool), asked)
	}
	first := text.Head(prose.FirstLine(answer), maxLine)
	lines := []string{first}
	if strings.Contains(answer, "Traceback (most recent call last)") { // it ends with what was raised
		lines = append(lines, text.Head(answer[strings.LastIndexByte(answer, '\n')+1:], maxLine))
	}
	for _, l := range lines {
		if exception().MatchString(l) {
			return l
		}
	}
	if statusLine().MatchString(first) {
		return first
	}
	if m := unserved().FindStringSubmatch(first); m != nil && !toolname.Looks(c.tool) && (m[1] == "" || !asked(m[1])) {
		return first
	}
	return ""
}

// notDone are the keys of what an action could not do, beside what it did.
var notDone = text.Set(`failed failures errors rejected skipped unavailable not_found`)

// lacked returns what an object lists as not done: its key, and the short texts of its entries; an empty argument
// for nothing.
func lacked(fs []argument.Field) argument.Field {
	var out argument.Field
	for _, f := range fs {
		if v := strings.TrimSpace(f.Value); notDone[f.List] && f.Row > 1 && v != "" && len(out.Value)+len(v) <= argument.MaxShort && prose.IsPrintable(v) {
			out.Key, out.Value = strings.Clone(f.List), strings.TrimSpace(out.Value+" "+v)
		}
	}
	return out
}

// objectFailure returns what an object says of a failure; acts: its status is that of the call, not of what it
// looked for.
func objectFailure(answer string, acts bool, asked func(string) bool) string {
	var object map[string]any
	if len(answer) > maxJSON || !unsuccessful().MatchString(answer) || json.Unmarshal([]byte(answer), &object) != nil {
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
			return prose.OneLine(text.Head(says, maxLine))
		}
	}
	return prose.OneLine(text.Head(answer, maxLine))
}
