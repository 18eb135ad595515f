package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

var (
	// changeTools are parts of the names of tools that change files.
	changeTools = []string{"edit", "write", "create", "patch", "replace", "insert", "delete", "remove", "rename"}
	// contentFields are the arguments for the content of a file.
	contentFields = []string{"content", "new_string", "old_string", "new_str", "old_str", "new_text", "old_text", "newtext", "oldtext", "patch", "diff", "file_text"}
)

// changesFiles reports whether a call changes files, by the name of its tool or by its arguments.
func changesFiles(name string, fs []argument.Field) bool {
	if c := editorCommand(fs); c != "" {
		return c != "view"
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(changeTools, func(tool string) bool { return strings.Contains(name, tool) }) ||
		slices.ContainsFunc(fs, func(f argument.Field) bool { return slices.Contains(contentFields, strings.ToLower(f.Key)) })
}

// argumentPaths returns up to eight files from arguments for paths.
func argumentPaths(fs []argument.Field) []string {
	var found []string
	for _, f := range fs {
		if !isPathKey(f.Key) {
			continue
		}
		if v := f.Value; len(v) <= maxDescription && strings.ContainsAny(v, "./\\") && prose.IsPrintable(v) && !strings.ContainsAny(v, "*?<>|\"\t") && !slices.Contains(found, v) {
			found = append(found, strings.Clone(v))
		}
	}
	return found[:min(len(found), 8)]
}

// isPathKey reports whether an argument names a file.
func isPathKey(key string) bool {
	key = strings.ToLower(key)
	return (strings.Contains(key, "path") || strings.Contains(key, "file")) && !slices.Contains(contentFields, key)
}

// editedRange returns the lines of a file that a call changes, as its arguments tell them, with a blank before them; "" for
// none.
func editedRange(fs []argument.Field) string {
	first, last := argument.Lookup(fs, "lines", "line_range", "start_line"), argument.Lookup(fs, "end_line")
	if last != "" {
		last = ":" + last
	}
	if !lineRange().MatchString(first + last) {
		return ""
	}
	return " " + first + last
}

var lineRange = text.Pattern(`^\d+[:-]\d+$`)

// editorCommands are those of an editor that is one tool, str_replace_based_edit_tool or str_replace_editor.
var editorCommands = text.Set(`view create str_replace insert undo_edit`)

// editorCommand returns the command of a call of such an editor, "" for none.
func editorCommand(fs []argument.Field) string {
	if c := argument.Lookup(fs, "command"); editorCommands[c] && argument.Lookup(fs, "path") != "" {
		return c
	}
	return ""
}

// rawCommand returns the command of a call for a shell, "" for none.
func rawCommand(fs []argument.Field) string {
	if editorCommand(fs) != "" {
		return ""
	}
	var parts []string
	for _, f := range fs {
		switch strings.ToLower(f.Key) {
		case "command", "cmd", "script":
			parts = append(parts, f.Value)
		}
	}
	return shellPrefix().ReplaceAllString(strings.Join(parts, " "), "")
}

// shellPrefix is before a command that is given as the arguments of a shell.
var shellPrefix = text.Pattern(`^(?:/bin/)?(?:ba|z|da)?sh -l?c `)

// heredoc is a text within a command, such as the message of a commit; its first line says
// what it is about.
var heredoc = text.Pattern(`\$\(cat <<-?\s*['"]?(\w+)['"]?\s*\n\s*([^\n]*)(?s:.*?)\n\s*\w+\s*\n?\s*\)`)

// staging comes before a commit, whose message says more than its files.
var staging = text.Pattern(`^(?:cd [^;&|]+&& *)?git add [^;&|]*&& *`)

// longLoop is the head of a loop over many words, of which the first tell enough: what it does comes behind them.
var longLoop = text.Pattern(`(\bfor \w+ in (?:[\w./-]+ ){3})(?:[\w./-]+ ){2,}[\w./-]+`)

// commandLine returns a command on one line.
func commandLine(command string) string {
	if strings.Contains(command, "$(cat <<") {
		command = heredoc().ReplaceAllString(command, "$2")
	}
	lines := prose.SplitLines(strings.ReplaceAll(text.Head(command, 4*maxDescription), "\\\n", " ")) // continued lines
	if says := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l[0] == '#' }); len(says) > 0 {
		lines = says
	}
	if len(lines) == 0 {
		return ""
	}
	command = longLoop().ReplaceAllString(staging().ReplaceAllString(strings.Join(lines, "; "), ""), "$1…")
	return prose.Excerpt(shell.WithoutRedirections(command), maxDescription)
}

// firstValue returns the first argument that is one short line, "" for none.
func firstValue(fs []argument.Field) string {
	for _, f := range fs {
		if v := strings.TrimSpace(f.Value); v != "" && !text.Longer(v, maxDescription) && prose.IsPrintable(v) {
			return strings.Clone(f.Key + " " + v)
		}
	}
	return ""
}
