package extract

import (
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// addDeclarations adds the names that the lines of a text of one file declare, such as functions
// and types, and returns the newest of those that are new. Those that a call is to write are not written yet.
func (s *history) addDeclarations(paths []string, content string, written bool) (added []string) {
	if len(paths) != 1 || s.files[paths[0]] == nil || path.Ext(paths[0]) == ".md" { // what code in a document declares may not be there
		return nil
	}
	f := s.files[paths[0]]
	for _, name := range declaredNames(content) {
		if written {
			delete(s.removed, name)
		}
		if !slices.Contains(f.declares, name) {
			name = strings.Clone(name)
			f.declares, added = appendBounded(f.declares, name, maxDeclares), appendBounded(added, name, maxDeclares)
		}
	}
	return added
}

// addContent adds what the result of a call shows of a file.
func (s *history) addContent(c *toolCall, content string) {
	s.addDeclarations(c.paths, content, true)
	if len(c.paths) == 1 && !c.changes && !c.failed && !c.undone && !strings.Contains(c.command, "|") {
		s.readShown(c, c.paths[0], content)
	}
}

// toldNames returns some of the names that a file declares, more if it was used lately: first those that edits changed or that
// are talked about, then the newest others.
func (s *history) toldNames(f *file) []string {
	most := maxToldNames
	if s.messages-f.last > freshNames {
		most /= 4
	}
	if len(f.declares) <= most {
		return f.declares
	}
	counts := func(name string) bool { return s.touched[name].file == f.path || s.derived.said[name] }
	names := slices.DeleteFunc(slices.Clone(f.declares), func(name string) bool { return !counts(name) })
	for _, name := range slices.Backward(f.declares) {
		if len(names) < most && !counts(name) {
			names = append(names, name)
		}
	}
	return names[max(0, len(names)-most):]
}

const (
	// maxToldNames is the number of names of a file that are told.
	maxToldNames = 16
	// freshNames is the number of messages after which fewer are.
	freshNames = 32
)

// namesSaid returns which names of files that declare many are in the requests and in what was said about them.
func (s *history) namesSaid() map[string]bool {
	said := map[string]bool{}
	for _, f := range s.files {
		if len(f.declares) > maxToldNames/4 {
			for _, name := range f.declares {
				said[name] = false
			}
		}
	}
	if len(said) == 0 {
		return nil
	}
	for _, t := range s.turns {
		for _, text := range append(slices.Clip(t.lines), t.request.head, t.lastText) {
			for w := range prose.Words(text) {
				if _, known := said[w]; known {
					said[w] = true
				}
			}
		}
	}
	return said
}

// dropDeclarations drops the names that the edit of the newest call removed.
func (s *history) dropDeclarations(paths []string, fs []argument.Field) {
	if len(paths) != 1 || s.files[paths[0]] == nil {
		return
	}
	before, after := changedLines(fs, func(argument.Field) bool { return true })
	removed, kept := declaredNames(strings.Join(before, "\n")), strings.Join(after, "\n")
	s.undeclare(s.newestCall(), s.files[paths[0]], func(name string) bool { return slices.Contains(removed, name) && !prose.ContainsWord(kept, name) })
}

// newestCall returns the call that was added last.
func (s *history) newestCall() *toolCall { return s.calls[len(s.calls)-1] }

// undeclare drops the names of a file that a call took out, and keeps them with the call until its result.
func (s *history) undeclare(c *toolCall, f *file, gone func(name string) bool) {
	f.declares = slices.DeleteFunc(f.declares, func(name string) bool {
		drop := gone(name)
		if drop && c.change != nil {
			c.change.names = append(c.change.names, name)
		}
		return drop
	})
}

// settleChange records the names that a call took out or touched or, if it failed, takes back what it changed.
func (s *history) settleChange(c *toolCall) {
	if c.change == nil {
		return
	}
	for e, lines := range c.change.dropped {
		if c.failed {
			e.lines = lines
		}
	}
	for name, file := range c.change.touched {
		if _, known := s.touched[name]; !c.failed && coined().MatchString(name) && (known || len(s.touched) < maxRemoved) {
			s.touched[name] = touch{s.messages, file}
		}
	}
	for _, name := range c.change.declared {
		if !c.failed {
			delete(s.removed, name)
		}
	}
	for _, p := range c.paths {
		f := s.files[p]
		if c.failed && f != nil {
			f.declares = slices.DeleteFunc(f.declares, func(name string) bool { return slices.Contains(c.change.declared, name) })
		}
		for _, name := range c.change.names {
			switch {
			case c.failed && f != nil:
				f.declares = appendNew(f.declares, name)
			case !c.failed && coined().MatchString(name) && len(s.removed) < maxRemoved && !s.declaresElsewhere(name, f):
				s.removed[name] = touch{s.messages, p}
			}
		}
	}
	c.change.dropped, c.change.declared, c.change.names, c.change.touched = nil, nil, nil, nil
}

// coined is a name that is no word of a sentence.
var coined = text.Pattern(`._|\d|[a-z][A-Z]`)

// maxRemoved is the number of names that were taken out, and of those that were touched, of which is known.
const maxRemoved = 2048

// declaresElsewhere reports whether another file declares a name.
func (s *history) declaresElsewhere(name string, f *file) bool {
	for _, o := range s.files {
		if o != f && slices.Contains(o.declares, name) {
			return true
		}
	}
	return false
}

// namesSince reports whether what was said up to a message has one of the names with later messages.
func namesSince(said string, since map[string]touch, at int) bool {
	if len(since) == 0 {
		return false
	}
	for w := range prose.Words(said) {
		if last, ok := since[w]; ok && last.at > at {
			return true
		}
	}
	return false
}

// touch is the message of the newest edit of what has a name, and its file.
type touch struct {
	at   int
	file string
}

// declaredNames returns the names that the lines of a text declare.
func declaredNames(content string) []string {
	var names []string
	for line := range strings.Lines(content) {
		if name := declaredName(line); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// maxDeclares is the number of names of a file, the newest.
const maxDeclares = 48

// declaredName returns the name in a line that declares a function or a type, "" for other lines.
func declaredName(line string) string {
	if found := declaration().FindStringSubmatch(line); found != nil {
		return found[1]
	}
	return ""
}

// declaration is a line that declares a name of 4 to 60 characters, behind the mark of a difference or what is
// left of a line number. What follows the name tells it from a sentence, such as "type of wire".
var declaration = text.Pattern(`^(?:[ \t|│→]+|[-+][ \t]*)?(?:(?:export|default|async|abstract|public|private|protected|static|pub(?:\([^)]*\))?|final) +)*` +
	`(?:func|def|class|function|type|interface|struct|enum|trait|fn) (?:\([^)]*\) )?([A-Za-z_]\w{3,59})` +
	`(?:[(<[{:=;]|\s*$| +(?:[[*={(<:A-Z]|struct|interface|func|map|string|int|bool|extends|implements|uint|byte|float))`)
