package extract

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// called takes in a call, without secrets.
func (s *history) called(id, name, arguments string, fs []field) {
	st := &step{id: strings.Clone(id), tool: strings.Clone(text.Head(flat(name), 64))}
	st.changes = changing(name, fs)
	st.paths = paths(fs)
	st.what = cmp.Or(command(fs), strings.Join(st.paths, ", "), firstValue(fs), short(flat(text.Head(arguments, 2*maxWhat)), maxWhat))
	s.turn().steps++
	s.count(st.tool).calls++
	for _, p := range st.paths {
		s.touch(p, st.changes)
	}
	if todo, ok := todos(fs); ok {
		s.todos, st.todo = todo, true
	}
	if len(s.steps) == maxSteps {
		s.steps = slices.Delete(s.steps, 0, 1)
	}
	s.steps = append(s.steps, st)
	if len(s.waiting) == maxPending {
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
	s.waiting = append(s.waiting, st)
}

// returned takes in the result of a call, given by its beginning and its end.
func (s *history) returned(id, head, tail string) {
	st := &step{}
	for i, w := range slices.Backward(s.waiting) {
		if w.id == id {
			st = w
			s.waiting = slices.Delete(s.waiting, i, i+1)
			break
		}
	}
	st.done = true
	// A long file that was read may begin with such a word.
	isFile := len(st.paths) > 0 && !st.changes && len(head) > 2000
	if line := fault(head, tail); line != "" && !isFile {
		st.failed = true
		st.outcome = strings.Clone(short(flat(line), maxWhat))
		if st.tool != "" {
			s.count(st.tool).failed++
		}
		return
	}
	if last := split(text.Tail(tail, 1000)); len(last) > 0 {
		st.outcome = strings.Clone(short(flat(last[len(last)-1]), maxWhat))
	}
}

func (s *history) count(name string) *tool {
	for _, t := range s.tools {
		if t.name == name {
			return t
		}
	}
	if len(s.tools) == maxTools {
		return s.tools[maxTools-1]
	}
	t := &tool{name: name}
	s.tools = append(s.tools, t)
	return t
}

// touch notes that a file was read or changed.
func (s *history) touch(path string, changed bool) {
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
	for _, f := range s.touched()[maxFiles/2:] {
		delete(s.files, f.path)
	}
}

// touched returns the files, those touched last first, changed ones before others.
func (s *history) touched() []*file {
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
	changers = []string{"edit", "write", "create", "patch", "replace", "insert", "delete", "remove", "rename"}
	written  = []string{"content", "new_string", "old_string", "new_str", "old_str", "new_text", "old_text", "newtext", "oldtext", "patch", "diff", "file_text"}
)

func changing(name string, fs []field) bool {
	name = strings.ToLower(name)
	for _, c := range changers {
		if strings.Contains(name, c) {
			return true
		}
	}
	return slices.ContainsFunc(fs, func(f field) bool { return slices.Contains(written, strings.ToLower(f.key)) })
}

// paths returns the files that a call names in fields for them.
func paths(fs []field) []string {
	var found []string
	for _, f := range fs {
		key := strings.ToLower(f.key)
		if !strings.Contains(key, "path") && !strings.Contains(key, "file") || slices.Contains(written, key) {
			continue
		}
		if v := f.value; len(v) <= maxWhat && strings.ContainsAny(v, "./\\") && plain(v) && !strings.ContainsAny(v, "*?<>|\"\t") && !slices.Contains(found, v) {
			found = append(found, strings.Clone(v))
		}
	}
	return found[:min(len(found), 8)]
}

// command returns the command that a call runs, on one line.
func command(fs []field) string {
	var parts []string
	for _, f := range fs {
		switch strings.ToLower(f.key) {
		case "command", "cmd", "script":
			parts = append(parts, f.value)
		}
	}
	lines := split(text.Head(strings.Join(parts, " "), 4*maxWhat))
	if len(lines) == 0 {
		return ""
	}
	return strings.Clone(short(flat(strings.Join(lines, "; ")), maxWhat))
}

// firstValue returns the first field of one short line.
func firstValue(fs []field) string {
	for _, f := range fs {
		if v := strings.TrimSpace(f.value); v != "" && !text.Longer(v, maxWhat) && plain(v) {
			return strings.Clone(f.key + " " + v)
		}
	}
	return ""
}

// todos returns what is left of a list of tasks: objects with a status and a text.
func todos(fs []field) (left []string, ok bool) {
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
				left = append(left, strings.Clone(short(flat(task), maxLine)+" ("+text.Head(flat(status), 20)+")"))
			}
		}
	}
	return left, ok
}
