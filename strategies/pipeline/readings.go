package pipeline

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// reading is what a call reads: a path or a tool, and which part of it, "" for the whole.
type reading struct{ of, part string }

// The commands that show a file or a part of it, and those that search: greps in any place of a
// pipeline, the others as the name of a program that has its arguments apart.
var (
	wholeReaders = []string{"cat", "bat", "nl", "less", "more", "type", "Get-Content"}
	partReaders  = []string{"head", "tail", "sed", "awk", "cut"}
	greps        = []string{"grep", "egrep", "fgrep", "rg", "ag", "ack", "Select-String"}
	searchers    = append([]string{"find", "fd", "ls", "pattern", "query", "regex"}, greps...)
	searchTools  = []string{"grep", "search", "glob", "find"}
)

// readings returns what a call reads of the paths and tools of PinPaths; nothing for a search,
// which returns lines from anywhere.
func (p Pipeline) readings(c *chat.ToolCall) []reading {
	if len(p.PinPaths) == 0 {
		return nil
	}
	if tool := c.Name + "()"; p.matches(tool) {
		return []reading{{of: tool + c.Arguments}}
	}
	name := strings.ToLower(c.Name)
	if slices.ContainsFunc(searchTools, func(s string) bool { return strings.Contains(name, s) }) {
		return nil
	}
	var out []reading
	part, command := false, false
	d := json.NewDecoder(strings.NewReader(c.Arguments))
	d.UseNumber()
	for token, err := d.Token(); err == nil; token, err = d.Token() {
		s, text := token.(string)
		if _, number := token.(json.Number); number || text && isNumber(s) {
			part = part || !command // beside a command, it is about its execution
			continue
		}
		shown, cut := p.shownBy(s)
		switch {
		case slices.Contains(searchers, s), slices.Contains(shown, ""):
			return nil
		case slices.Contains(partReaders, s):
			part = true
		case len(shown) > 0:
			part, command = cut, true
			for _, name := range shown {
				out = append(out, reading{of: name})
			}
		case (!strings.ContainsAny(s, " \t\n") || path.IsAbs(s) && !strings.Contains(s, "\n")) && p.matches(s):
			out = append(out, reading{of: s})
		case strings.Contains(name, "skill") && s != "" && !strings.ContainsAny(s, " \t\n"):
			out = append(out, p.skillAt("skills/"+s)...)
		}
	}
	for i := range out {
		if part {
			out[i].part = c.Arguments
		}
	}
	return out
}

// isNumber reports whether a text consists of digits.
func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// shownBy returns the paths of PinPaths that a shell command shows, and whether it shows a part
// of them; "" among them if it searches.
func (p Pipeline) shownBy(command string) (shown []string, part bool) {
	for simple := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune("|;&\n", r) }) {
		words := strings.FieldsFunc(simple, func(r rune) bool { return strings.ContainsRune(" \t\r\"'`<>()=", r) })
		if len(words) < 2 {
			continue
		}
		program := path.Base(words[0])
		cuts := slices.Contains(partReaders, program)
		switch {
		case slices.Contains(greps, program):
			return []string{""}, false
		case !cuts && !slices.Contains(wholeReaders, program):
			continue
		}
		part = part || cuts
		for _, w := range words[1:] {
			if p.matches(w) {
				shown = append(shown, w)
			}
		}
	}
	return shown, part
}

// skillAt returns the reading of the skill in a folder, if PinPaths match the folder or its file.
func (p Pipeline) skillAt(folder string) []reading {
	if folder = strings.TrimRight(folder, "/"); p.matches(folder) || p.matches(folder+"/SKILL.md") {
		return []reading{{of: folder + "/SKILL.md"}}
	}
	return nil
}
