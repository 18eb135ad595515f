package extract

import (
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// addDeclarations adds the names that the lines of a text of one file declare, such as functions
// and types.
func (s *history) addDeclarations(paths []string, content string) {
	if len(paths) != 1 || s.files[paths[0]] == nil {
		return
	}
	f := s.files[paths[0]]
	for _, name := range declaredNames(content) {
		if delete(s.removed, name); !slices.Contains(f.declares, name) {
			f.declares = appendBounded(f.declares, strings.Clone(name), maxDeclares)
		}
	}
}

// dropDeclarations drops the names that an edit of a file removed.
func (s *history) dropDeclarations(paths []string, fs []argument) {
	if len(paths) != 1 || s.files[paths[0]] == nil {
		return
	}
	before, after := changedLines(fs, func(argument) bool { return true })
	removed, kept := declaredNames(strings.Join(before, "\n")), declaredNames(strings.Join(after, "\n"))
	s.undeclare(s.files[paths[0]], func(name string) bool { return slices.Contains(removed, name) && !slices.Contains(kept, name) })
}

// undeclare drops the names of a file that are gone.
func (s *history) undeclare(f *file, gone func(name string) bool) {
	f.declares = slices.DeleteFunc(f.declares, func(name string) bool {
		if gone(name) && len(s.removed) < maxRemoved {
			s.removed[name] = s.messages
		}
		return gone(name)
	})
}

// maxRemoved is the number of names that were taken out.
const maxRemoved = 512

// namesRemoved reports whether what was said up to a message has a name that an edit took out later, and that no file
// declares.
func (s *history) namesRemoved(said string, at int) bool {
	if len(s.removed) == 0 {
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(said, func(r rune) bool { return r != '_' && !isLetterOrDigit(r) }), func(w string) bool {
		since, ok := s.removed[w]
		return ok && since > at && !slices.ContainsFunc(slices.Collect(maps.Values(s.files)), func(f *file) bool { return slices.Contains(f.declares, w) })
	})
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
