package extract

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// addCall takes in a call, without secrets.
func (s *history) addCall(id, name, arguments string, fs []argument) {
	st := &toolCall{id: strings.Clone(id), tool: strings.Clone(text.Head(oneLine(name), 64))}
	st.changes = changesFiles(name, fs)
	st.paths = argumentPaths(fs)
	st.description = cmp.Or(argumentCommand(fs), strings.Join(st.paths, ", "), firstValue(fs), truncate(oneLine(text.Head(arguments, 2*maxDescription)), maxDescription))
	s.currentTurn().calls++
	s.toolUse(st.tool).calls++
	for _, p := range st.paths {
		s.recordFile(p, st.changes)
	}
	if todo, ok := parseTodos(fs); ok {
		s.todos, st.isTodoList = todo, true
	}
	if len(s.calls) == maxCalls {
		s.calls = slices.Delete(s.calls, 0, 1)
	}
	s.calls = append(s.calls, st)
	if len(s.openCalls) == maxOpenCalls {
		s.openCalls = slices.Delete(s.openCalls, 0, 1)
	}
	s.openCalls = append(s.openCalls, st)
}

// addResult takes in the result of a call, given by its beginning and its end.
func (s *history) addResult(id, head, tail string) {
	st := &toolCall{}
	for i, w := range slices.Backward(s.openCalls) {
		if w.id == id {
			st = w
			s.openCalls = slices.Delete(s.openCalls, i, i+1)
			break
		}
	}
	st.done = true
	// A long file that was read may begin with such a word.
	isFile := len(st.paths) > 0 && !st.changes && len(head) > 2000
	if line := failureLine(head, tail); line != "" && !isFile {
		st.failed = true
		st.outcome = strings.Clone(truncate(oneLine(line), maxDescription))
		if st.tool != "" {
			s.toolUse(st.tool).failed++
		}
		return
	}
	if last := splitLines(text.Tail(tail, 1000)); len(last) > 0 {
		st.outcome = strings.Clone(truncate(oneLine(last[len(last)-1]), maxDescription))
	}
}

func (s *history) toolUse(name string) *toolUse {
	for _, t := range s.tools {
		if t.name == name {
			return t
		}
	}
	if len(s.tools) == maxTools {
		return s.tools[maxTools-1]
	}
	t := &toolUse{name: name}
	s.tools = append(s.tools, t)
	return t
}

// recordFile notes that a file was read or changed.
func (s *history) recordFile(path string, changed bool) {
	f := s.files[path]
	if f == nil {
		if len(s.files) >= maxFiles {
			s.dropFiles()
		}
		f = &file{path: strings.Clone(path)}
		s.files[f.path] = f
	}
	if f.last = s.messages; changed {
		f.changes++
	} else {
		f.reads++
	}
}

// dropFiles forgets the half of the files that were touched least lately.
func (s *history) dropFiles() {
	for _, f := range s.recentFiles()[maxFiles/2:] {
		delete(s.files, f.path)
	}
}

// recentFiles returns the files, those touched last first, changed ones before others.
func (s *history) recentFiles() []*file {
	all := make([]*file, 0, len(s.files))
	for _, f := range s.files {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *file) int {
		return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(b.changes, a.changes), cmp.Compare(a.path, b.path))
	})
	return all
}

// changers are parts of the names of tools that change a file, written those of fields
// that hold what is written.
var (
	changeTools   = []string{"edit", "write", "create", "patch", "replace", "insert", "delete", "remove", "rename"}
	contentFields = []string{"content", "new_string", "old_string", "new_str", "old_str", "new_text", "old_text", "newtext", "oldtext", "patch", "diff", "file_text"}
)

func changesFiles(name string, fs []argument) bool {
	name = strings.ToLower(name)
	for _, c := range changeTools {
		if strings.Contains(name, c) {
			return true
		}
	}
	return slices.ContainsFunc(fs, func(f argument) bool { return slices.Contains(contentFields, strings.ToLower(f.key)) })
}

// argumentPaths returns the files that a call names in fields for them.
func argumentPaths(fs []argument) []string {
	var found []string
	for _, f := range fs {
		key := strings.ToLower(f.key)
		if !strings.Contains(key, "path") && !strings.Contains(key, "file") || slices.Contains(contentFields, key) {
			continue
		}
		if v := f.value; len(v) <= maxDescription && strings.ContainsAny(v, "./\\") && isPrintable(v) && !strings.ContainsAny(v, "*?<>|\"\t") && !slices.Contains(found, v) {
			found = append(found, strings.Clone(v))
		}
	}
	return found[:min(len(found), 8)]
}

// argumentCommand returns the command that a call runs, on one line.
func argumentCommand(fs []argument) string {
	var parts []string
	for _, f := range fs {
		switch strings.ToLower(f.key) {
		case "command", "cmd", "script":
			parts = append(parts, f.value)
		}
	}
	lines := splitLines(text.Head(strings.Join(parts, " "), 4*maxDescription))
	if len(lines) == 0 {
		return ""
	}
	return strings.Clone(truncate(oneLine(strings.Join(lines, "; ")), maxDescription))
}

// firstValue returns the first field of one short line.
func firstValue(fs []argument) string {
	for _, f := range fs {
		if v := strings.TrimSpace(f.value); v != "" && !text.Longer(v, maxDescription) && isPrintable(v) {
			return strings.Clone(f.key + " " + v)
		}
	}
	return ""
}

// parseTodos returns what is left of a list of tasks: objects with a status and a text.
func parseTodos(fs []argument) (left []string, ok bool) {
	for i := 0; i < len(fs); {
		object, status, task := fs[i].object, "", ""
		for ; i < len(fs) && fs[i].object == object; i++ {
			switch strings.ToLower(fs[i].key) {
			case "status", "state":
				status = strings.ToLower(fs[i].value)
			case "content", "title", "task", "step", "text", "description", "subject":
				task = cmp.Or(task, fs[i].value)
			}
		}
		if status == "" || task == "" {
			continue
		}
		ok = true
		switch status {
		case "completed", "complete", "done", "cancelled", "canceled", "closed":
		default:
			if len(left) < maxNotes {
				left = append(left, strings.Clone(truncate(oneLine(task), maxLine)+" ("+text.Head(oneLine(status), 20)+")"))
			}
		}
	}
	return left, ok
}
