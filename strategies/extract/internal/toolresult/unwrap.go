package toolresult

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
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

// maxWrapped is the size, in bytes, of the largest result that is unwrapped.
const maxWrapped = 8 << 20

// Unwrap returns the output that a result holds, with the exit code of a failure in front of it and without what a
// program wrote over to tell how far it got.
func Unwrap(result string) string {
	output := unwrap(result)
	if strings.Contains(output, "\r") {
		output = progress().ReplaceAllString(output, "$1")
	}
	return output
}

// progress is what a program writes over in a line.
var progress = text.Pattern(`(?:[^\r\n]*(?:\d%|\d/\d)[^\r\n]*\r)+([^\r\n])`)

func unwrap(result string) string {
	if m := trailer().FindStringSubmatchIndex(text.Tail(result, prose.MaxLine)); m != nil {
		tail := text.Tail(result, prose.MaxLine)
		code := ""
		if m[2] >= 0 {
			code = tail[m[2]:m[3]]
		}
		return withExit(result[:len(result)-len(tail)+m[0]], code)
	}
	if len(result) > maxWrapped {
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
	if w.IsError && FailureLine(output, output) == "" {
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
	names, parts := prose.Elements(result, nil)
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
	// wrapper is in an output that may be wrapped.
	wrapper = text.Pattern(`\A\s*\{\s*"(?:output|stdout|stderr|content|exit_code|exitCode|isError|metadata)"\s*:`)
	// trailer is below an output in harnesses that keep a shell open.
	trailer = text.Pattern(`(?:\n\[(?:Current working directory: [^\]\n]*|Python interpreter: [^\]\n]*|(?:The command completed|Command finished) with exit code (\d+)\.?)\])+\s*\z`)
)
