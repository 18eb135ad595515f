package extract

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	maxEdit      = 360 // characters of the lines that describe an edit
	maxEditLines = 6
	maxEditAge   = 200 // calls after which an edit is not listed
	minCodeLine  = 4   // bytes of a line of code that says something
	// editSeparator is between lines of an edit.
	editSeparator = " · "
)

// change is what a call changes in files.
type change struct {
	// from and to are the hashes of the texts of an edit that replaces one by the other, else 0.
	from, to uint32
	files    []*edit
	// Until its result, declared are the names that it adds, names those that it takes out, touched those of what it
	// changes, and dropped the lines of earlier edits before it.
	declared, names []string
	touched         map[string]string // by name, the file
	dropped         map[*edit][]string
}

// edit is what a call changes in a file.
type edit struct {
	path string
	// lines are the first that it adds or, if it adds none, takes out; none are known of a file that is
	// written as a whole.
	lines   []string
	above   map[string][]uint32 // of a line, see places
	within  string              // what is declared above them, of what the edit leaves as it is; "" if that is not known
	removes bool                // they are taken out
	more    bool                // there are more
}

// String returns what the edit changes, on one line.
func (e *edit) String() string {
	s, to := "added ", "to "
	if e.removes {
		s, to = "removed ", "from "
	}
	if e.within != "" {
		s += to + e.within + ": "
	}
	if s += strings.Join(e.lines, editSeparator); e.more && !strings.HasSuffix(s, prose.Ellipsis) {
		s += prose.Ellipsis
	}
	return s
}

// oneChange returns what a call changes in its only file, in n characters and with a mark before it, "" if that is not told.
func (c *toolCall) oneChange(mark string, n int) string {
	if !c.changes || c.change == nil || len(c.change.files) != 1 || len(c.change.files[0].lines) == 0 {
		return ""
	}
	return mark + prose.Truncate(c.change.files[0].String(), n)
}

// recordChange adds what a call changes in its files to it. Lines that earlier calls added and that are gone
// now are not listed any more.
func (s *history) recordChange(c *toolCall, fs []argument.Field) {
	c.change = &change{}
	for _, f := range fs {
		switch key := strings.ToLower(f.Key); {
		case f.Object > 1 || !slices.Contains(contentFields, key):
		case strings.HasPrefix(key, "old"):
			c.change.from ^= hash(f.Value)
		case strings.HasPrefix(key, "new"):
			c.change.to ^= hash(f.Value)
		}
	}
	for _, old := range s.calls[:max(0, len(s.calls)-maxEditAge)] {
		if old.change != nil {
			old.change.files = nil
		}
	}
	for _, p := range c.paths {
		object := 0
		for _, f := range fs {
			if f.Value == p && isPathKey(f.Key) {
				object = f.Object
			}
		}
		of := func(f argument.Field) bool { return len(c.paths) == 1 || f.Object == object }
		before, after := changedLines(fs, of)
		content, whole := c.rewrites(fs)
		if whole {
			kept := declaredNames(content)
			s.undeclare(c, s.files[p], func(name string) bool { return !slices.Contains(kept, name) })
		}
		for _, f := range fs {
			if of(f) && strings.HasPrefix(strings.ToLower(f.Key), "old") { // which is in the file
				s.readShown(c, p, f.Value)
			}
		}
		moved := map[string]bool{} // lines that earlier edits added and this one takes out
		if earlier := s.editsOf(p); len(earlier) > 0 {
			gone, kept := lineSet(before), lineSet(append(after, prose.SplitLines(content)...))
			for _, e := range earlier {
				left := slices.DeleteFunc(slices.Clone(e.lines), func(l string) bool {
					drop := (whole || gone[l]) && !kept[l]
					moved[l] = moved[l] || drop
					return drop
				})
				c.leave(e, left)
			}
		}
		pieces, above := 0, map[string][]uint32{}
		for _, f := range fs {
			if of(f) && strings.HasPrefix(strings.ToLower(f.Key), "new") {
				pieces++
				places(f.Value, false, func(line string, hashes []uint32) { above[editLine(line)] = hashes })
			}
		}
		e, added := newEdit(p, after, before, pieces < 2)
		out, removed := newEdit(p, before, after, pieces < 2)
		for _, name := range append(added, removed...) {
			if c.change.touched == nil {
				c.change.touched = map[string]string{}
			}
			c.change.touched[name] = p
		}
		if len(e.lines) == 0 || isPlain(e.lines[0]) && len(out.lines) > 0 && !isPlain(out.lines[0]) { // what it takes out says more
			e = out
			e.removes = true
			e.lines = slices.DeleteFunc(e.lines, func(l string) bool { return moved[l] })
		}
		for _, l := range e.lines {
			if !e.removes {
				e.above[l] = above[l]
			}
		}
		c.change.files = append(c.change.files, e)
	}
}

// leave leaves an earlier edit only some of its lines. If the call is an edit itself, its result may show that it failed.
func (c *toolCall) leave(e *edit, lines []string) {
	if len(lines) == len(e.lines) {
		return
	}
	if c.change != nil {
		if c.change.dropped == nil {
			c.change.dropped = map[*edit][]string{}
		}
		if _, known := c.change.dropped[e]; !known {
			c.change.dropped[e] = e.lines
		}
	}
	e.lines = lines
}

// places calls do with each line of a text of code and hashes of what stands above it, by which it is found again: the line
// before with the name that is declared above it, the two lines before or, if whole is set or there is no more, a long line.
func places(content string, whole bool, do func(line string, above []uint32)) {
	scope, former, before := "", "", ""
	for l := range strings.Lines(content) {
		if l = text.Trim(strings.TrimLeft(l, " \t|│→")); l == "" {
			continue
		}
		var above []uint32
		if said := !isPlain(before) || comment().MatchString(before); said && len(before) >= minPlace {
			if scope != "" {
				above = append(above, hash(scope+"\n"+before))
			}
			if former != "" {
				above = append(above, hash(former+"\n"+before))
			}
			if (whole || former == "") && len(before) >= 2*minPlace {
				above = append(above, hash(before))
			}
		}
		do(l, above)
		if name := declaredName(l); name != "" {
			if scope = ""; function().MatchString(l) { // not all that a class has
				scope = name
			}
		}
		former, before = before, l
	}
}

// function is in a line that declares a function.
var function = text.Pattern(`\b(?:func|def|function|fn) `)

// minPlace is the number of bytes of a line by which the one below it is found.
const minPlace = 16

// readShown takes those lines out of earlier edits of a file that are gone, as a part of the file shows to the call: what stood
// above them is followed by something else that no edit added.
func (s *history) readShown(c *toolCall, path, shown string) {
	earlier := s.editsOf(path)
	if len(earlier) == 0 {
		return
	}
	next, last := map[uint32]string{}, "" // what follows
	places(shown, true, func(line string, above []uint32) {
		last = editLine(line)
		for _, h := range above {
			next[h] = last
		}
	})
	var all string // without blanks and quotes, as a formatter may change them
	added := map[string]bool{}
	for _, e := range earlier {
		for _, l := range e.lines {
			added[l] = true
		}
	}
	for _, e := range earlier {
		c.leave(e, slices.DeleteFunc(slices.Clone(e.lines), func(l string) bool {
			follows := ""
			for _, h := range e.above[l] {
				follows = cmp.Or(follows, next[h])
			}
			if follows == "" || added[follows] || follows == last {
				return false
			}
			if all == "" {
				all = squeezed().Replace(shown)
			}
			return !strings.Contains(all, squeezed().Replace(strings.TrimSuffix(l, prose.Ellipsis)))
		}))
	}
}

// squeezed returns what leaves the blanks and the quotes out of code.
var squeezed = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(" ", "", "\t", "", "\n", "", "\r", "", "'", "", `"`, "")
})

// rewrites returns the content of a file that a call writes as a whole.
func (c *toolCall) rewrites(fs []argument.Field) (content string, ok bool) {
	tool := strings.ToLower(c.tool)
	if len(c.paths) != 1 || partial().MatchString(tool) {
		return "", false
	}
	for _, f := range fs {
		switch key := strings.ToLower(f.Key); {
		case partial().MatchString(key):
			return "", false
		case key == "file_text", key == "content" && (strings.Contains(tool, "write") || strings.Contains(tool, "create")):
			content, ok = f.Value, true
		}
	}
	return content, ok
}

// partial is in the name of a tool, or of an argument, that changes a part of a file.
var partial = text.Pattern(`append|insert|line|mode|offset|cell|old|new|patch|diff`)

// lineSet returns lines of code as an edit tells them.
func lineSet(lines []string) map[string]bool {
	set := map[string]bool{}
	for _, l := range lines {
		set[editLine(l)] = true
	}
	return set
}

// editsOf returns the edits of a file that add lines.
func (s *history) editsOf(path string) []*edit {
	var out []*edit
	for _, c := range s.calls {
		if c.change == nil {
			continue
		}
		for _, e := range c.change.files {
			if e.path == path && !e.removes {
				out = append(out, e)
			}
		}
	}
	return out
}

// editsByFile returns the edits in force of which lines are known, by path, with the index of their calls.
func (s *history) editsByFile() map[string][]madeEdit {
	back := takenBack(s.calls)
	out := map[string][]madeEdit{}
	for i, c := range s.calls {
		if c.change == nil || !c.edited() || back[c] {
			continue
		}
		for _, e := range c.change.files {
			if len(e.lines) > 0 && !isPlain(e.lines[0]) {
				out[e.path] = append(out[e.path], madeEdit{e, i})
			}
		}
	}
	return out
}

// madeEdit is an edit with the index of its call.
type madeEdit struct {
	*edit
	call int
}

// newEdit tells lines that are not among others: of code that says something, declarations first, and nothing else
// if there is such. It also returns the names of what is declared by the lines or, if they are one piece, has them.
func newEdit(path string, lines, others []string, whole bool) (e *edit, names []string) {
	known, tasks := map[string]bool{}, map[string]bool{} // tasks are lines of others, ticked off
	for _, l := range others {
		known[l] = true
		if task, open := strings.CutPrefix(l, "- [ ] "); open {
			tasks["- [x] "+task] = true
		} else if task, ticked := strings.CutPrefix(l, "- [x] "); ticked { // it is not taken out
			known["- [ ] "+task] = true
		}
	}
	var declaring, rest, plain []string
	scope, depth, scopes := "", 0, 0 // the scope of a line, and the number of those with lines that are told
	opened := false                  // a condition that is told ends the line before
	for _, l := range lines {
		body := opened && !comment().MatchString(l)
		opened = false
		name := declaredName(l)
		if name != "" && whole && strings.HasSuffix(l, "{") {
			scope, depth = name, 0
		}
		if scope != "" && strings.ContainsAny(l, "{}") {
			code := quotedText().ReplaceAllString(l, "")
			depth += strings.Count(code, "{") - strings.Count(code, "}")
		}
		if depth <= 0 {
			scope = ""
		}
		if known[l] && !body || len(l) < minCodeLine || len(declaring) > maxEditLines {
			continue
		}
		known[l] = true
		switch {
		case name != "":
			declaring = append(declaring, l)
		case !strings.ContainsFunc(l, prose.IsLetterOrDigit):
			continue
		case (body || !isPlain(l)) && !tasks[l]:
			if len(rest) <= maxEditLines {
				rest = append(rest, l)
			}
			opened = strings.HasSuffix(l, "{") || strings.HasSuffix(l, ":")
		case len(plain) == 0:
			plain = append(plain, l)
		}
		if name = cmp.Or(name, scope); scopes == 0 || names[len(names)-1] != name {
			names = append(names, strings.Clone(name))
			scopes++
		}
	}
	if len(declaring)+len(rest) == 0 {
		rest = plain
	}
	e = &edit{path: path, above: map[string][]uint32{}}
	if len(declaring) == 0 && scopes == 1 {
		e.within = names[0]
	}
	size := 0
	for i, l := range append(declaring, rest...) {
		l = editLine(l)
		if e.more = i == maxEditLines || i > 0 && size+len(l) > maxEdit; e.more {
			break
		}
		e.lines = append(e.lines, strings.Clone(l))
		size += len(l)
	}
	return e, names
}

// editLine returns a line of code as an edit tells it.
func editLine(l string) string { return prose.Truncate(prose.OneLine(l), maxEdit/2) }

// changedLines returns the lines of the arguments of an edit for the content before and after it, those of
// a file that is written as a whole left out.
func changedLines(fs []argument.Field, of func(argument.Field) bool) (before, after []string) {
	for _, f := range fs {
		switch key := strings.ToLower(f.Key); {
		case !slices.Contains(contentFields, key) || !of(f):
		case strings.HasPrefix(key, "old"):
			before = append(before, prose.SplitLines(f.Value)...)
		case strings.HasPrefix(key, "new"):
			after = append(after, prose.SplitLines(f.Value)...)
		case key == "patch" || key == "diff":
			for _, l := range prose.SplitLines(f.Value) {
				if sign, rest := l[0], text.Trim(l[1:]); rest == "" || strings.HasPrefix(l, "---") || strings.HasPrefix(l, "+++") {
					continue
				} else if sign == '-' {
					before = append(before, rest)
				} else if sign == '+' {
					after = append(after, rest)
				}
			}
		}
	}
	return before, after
}

// quotedText is a text within a line of code.
var quotedText = text.Pattern("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`")

// comment is a line of code that is none.
var comment = text.Pattern(`^(?://|#(?:[^!\[]|$)|/?\*|--|<!--)`)

// isPlain reports whether a line of code says nothing alone.
func isPlain(l string) bool { return comment().MatchString(l) || plainCode().MatchString(l) }

// plainCode is a line of code that any program has: an import, a check of an error, a return of
// constants, the begin of an alternative.
var plainCode = text.Pattern(`^import\b|^(?:from|use|using|require|include) |^\w* ?"[^" ]*",?$|^"[^"]*"[\s+,;)]*$|^(?:if|\} else if) err [!=]= nil|^return(?: (?:nil|err|true|false|None|null|\d+|""|,)[, ]*)*;?$|^(?:\} ?)?(?:else|try|finally|catch|do|end|fi|done|pass|break|continue|default)\b[ ({:;]*$|^t\.(?:Helper|Parallel)\(\)$`)

const (
	patchBegin = "*** Begin Patch"
	patchEnd   = "*** End Patch"
)

// patchHeader begins the part of a patch that is about one file.
var patchHeader = text.Pattern(`^\*\*\* (?:Add|Update|Delete) File: (.+)$`)

// patchArguments returns what a patch of Codex changes as the arguments of an edit, one object for each
// file with a pair of texts for each piece, and nil if s has none.
func patchArguments(s string) []argument.Field {
	_, patch, ok := strings.Cut(s, patchBegin)
	if !ok {
		return nil
	}
	patch, _, _ = strings.Cut(patch, patchEnd)
	var out []argument.Field
	file := 0
	piece := func() { // of the file
		out = append(out, argument.Field{Key: "old_text", Object: file}, argument.Field{Key: "new_text", Object: file})
	}
	for l := range strings.Lines(patch) {
		if m := patchHeader().FindStringSubmatch(strings.TrimRight(l, "\r\n")); m != nil {
			file++
			out = append(out, argument.Field{Key: "file_path", Value: text.Trim(m[1]), Object: file})
			piece()
			continue
		}
		switch n := len(out); {
		case n == 0:
		case l[0] == '-':
			out[n-2].Value += l[1:]
		case l[0] == '+':
			out[n-1].Value += l[1:]
		case out[n-2].Value+out[n-1].Value != "":
			piece()
		}
	}
	return out
}
