package stub

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Line returns a short replacement for a tool's result: the tool, its main arguments and
// the size of the result, in characters or lines. arguments is the JSON of the call as the
// model wrote it; missing, unparsable and mistyped arguments are shown as missing.
//
// Line breaks within an argument are kept, so the result may have several lines.
func Line(tool, arguments, result string) string {
	a := fields(arguments)
	if describe := describers[tool]; describe != nil {
		return "[" + tool + "] " + describe(a, result)
	}
	switch tool {
	case "browser_navigate", "browser_click", "browser_snapshot", "browser_type", "browser_scroll", "browser_vision":
		return "[" + tool + "]" + browserTarget(a) + " (" + length(result) + " chars)"
	case "skill_view", "skills_list", "skill_manage":
		return "[" + tool + "] name=" + a.show("name", "?") + " (" + length(result) + " chars)"
	}
	return "[" + tool + "]" + firstArguments(a) + " (" + length(result) + " chars result)"
}

// describers describe the calls of known tools.
var describers = map[string]func(a object, result string) string{
	"terminal": func(a object, result string) string {
		return "ran `" + text.Cut(a.text("command"), 80, 77) + "` -> exit " + first(exitCode, result) + ", " + lineCount(result) + " lines output"
	},
	"read_file": func(a object, result string) string {
		return "read " + a.show("path", "?") + " from line " + a.show("offset", "1") + " (" + length(result) + " chars)"
	},
	"write_file": func(a object, _ string) string {
		written := "?"
		if s := a.text("content"); s != "" {
			written = strconv.Itoa(strings.Count(s, "\n") + 1)
		}
		return "wrote to " + a.show("path", "?") + " (" + written + " lines)"
	},
	"search_files": func(a object, result string) string {
		return a.show("target", "content") + " search for '" + a.show("pattern", "?") + "' in " + a.show("path", ".") +
			" -> " + first(totalCount, result) + " matches"
	},
	"patch": func(a object, result string) string {
		return a.show("mode", "replace") + " in " + a.show("path", "?") + " (" + length(result) + " chars result)"
	},
	"web_search": func(a object, result string) string {
		return "query='" + a.show("query", "?") + "' (" + length(result) + " chars result)"
	},
	"web_extract": func(a object, result string) string {
		url, more := "?", ""
		if urls, err := rawjson.ParseArray([]byte(a.raw("urls"))); err == nil && len(urls) > 0 {
			url = show(string(urls[0]), "?")
			if len(urls) > 1 {
				more = " (+" + strconv.Itoa(len(urls)-1) + " more)"
			}
		}
		return url + more + " (" + length(result) + " chars)"
	},
	"delegate_task": func(a object, result string) string {
		return "'" + text.Cut(a.text("goal"), 60, 57) + "' (" + length(result) + " chars result)"
	},
	"execute_code": func(a object, result string) string {
		code := text.Cut(a.text("code"), 60, 60)
		return "`" + strings.ReplaceAll(code, "\n", " ") + "` (" + lineCount(result) + " lines output)"
	},
	"vision_analyze": func(a object, result string) string {
		return "'" + text.Head(a.text("question"), 50) + "' (" + length(result) + " chars)"
	},
	"memory":         func(a object, _ string) string { return a.show("action", "?") + " on " + a.show("target", "?") },
	"todo":           func(object, string) string { return "updated task list" },
	"clarify":        func(object, string) string { return "asked user a question" },
	"text_to_speech": func(_ object, result string) string { return "generated audio (" + length(result) + " chars)" },
	"cronjob":        func(a object, _ string) string { return a.show("action", "?") },
	"process": func(a object, _ string) string {
		return a.show("action", "?") + " session=" + a.show("session_id", "?")
	},
}

var (
	exitCode   = regexp.MustCompile(`"exit_code"\s*:\s*(-?\d+)`)
	totalCount = regexp.MustCompile(`"total_count"\s*:\s*(\d+)`)
)

// first returns the group of the first match of a pattern, or "?".
func first(p *regexp.Regexp, s string) string {
	if m := p.FindStringSubmatchIndex(s); m != nil {
		return s[m[2]:m[3]]
	}
	return "?"
}

// browserTarget returns the URL or element reference among the arguments of a browser
// tool, if any.
func browserTarget(a object) string {
	if url := a.show("url", ""); url != "" {
		return " " + url
	}
	if ref := a.show("ref", ""); ref != "" {
		return " ref=" + ref
	}
	return ""
}

// firstArguments returns the first two arguments of any tool.
func firstArguments(a object) string {
	var b strings.Builder
	for _, f := range a.distinct(2) {
		b.WriteString(" " + f.key + "=" + text.Head(show(f.value, "null"), 40))
	}
	return b.String()
}

// length returns the number of characters in s, with commas between thousands.
func length(s string) string { return chat.Thousands(utf8.RuneCountInString(s)) }

// lineCount returns the number of lines in s, 0 if it is blank.
func lineCount(s string) string {
	if text.Trim(s) == "" {
		return "0"
	}
	return strconv.Itoa(strings.Count(s, "\n") + 1)
}
