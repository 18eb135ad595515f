package extract

import (
	"slices"
	"strings"
)

// addDeclarations adds the names that the lines of a text of one file declare, such as functions
// and types.
func (s *history) addDeclarations(paths []string, text string) {
	if len(paths) != 1 || s.files[paths[0]] == nil {
		return
	}
	f := s.files[paths[0]]
	for _, name := range declaredNames(text) {
		if !slices.Contains(f.declares, name) {
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
	f := s.files[paths[0]]
	f.declares = slices.DeleteFunc(f.declares, func(name string) bool { return slices.Contains(removed, name) && !slices.Contains(kept, name) })
}

// declaredNames returns the names that the lines of a text declare.
func declaredNames(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		if start, end := declaredName(line); end > start {
			names = append(names, line[start:end])
		}
	}
	return names
}

// maxDeclares is the number of names of a file, the newest.
const maxDeclares = 48

const (
	minDeclared = 4 // bytes of a name
	maxDeclared = 60
)

// declaredName returns the range of the name in a line that declares a function or a type, zeros
// for other lines. A mark of a difference may precede it.
func declaredName(line string) (start, end int) {
	i := len(line) - len(strings.TrimLeft(line, " \t|│→")) // also what was behind a line number
	if i == 0 && line != "" && (line[0] == '+' || line[0] == '-') {
		i = len(line) - len(strings.TrimLeft(line[1:], " \t"))
	}
	for {
		from := i
		for i < len(line) && line[i] >= 'a' && line[i] <= 'z' {
			i++
		}
		word := line[from:i]
		if i == from || i == len(line) || line[i] != ' ' && (word != "pub" || line[i] != '(') {
			return 0, 0
		}
		switch word {
		case "export", "default", "async", "abstract", "public", "private", "protected", "static", "pub", "final":
			if line[i] == '(' { // pub(crate)
				i += max(0, strings.IndexByte(line[i:], ')')) + 1
			}
			for i < len(line) && line[i] == ' ' {
				i++
			}
			continue
		case "func", "def", "class", "function", "type", "interface", "struct", "enum", "trait", "fn":
		default:
			return 0, 0
		}
		if i++; i < len(line) && line[i] == '(' { // the receiver of a method
			n := strings.Index(line[i:], ") ")
			if n < 0 {
				return 0, 0
			}
			i += n + len(") ")
		}
		start = i
		for i < len(line) && asciiWord.has(line[i]) {
			i++
		}
		if i-start < minDeclared || i-start > maxDeclared || digit.has(line[start]) || i < len(line) && strings.IndexByte(" (<[{:=;\n\r", line[i]) < 0 {
			return 0, 0
		}
		if i < len(line) && line[i] == ' ' && strings.TrimRight(line, "\r\n") != "" && !declares(word, strings.TrimSpace(line[i:])) {
			return 0, 0
		}
		return start, i
	}
}

// declares reports whether what follows a name belongs to a declaration, unlike "type of wire".
func declares(word, rest string) bool {
	for _, p := range []string{"struct", "interface", "func", "map", "[]", "*", "string", "int", "bool", "=", "{", "(", "<", ":", "extends", "implements", "uint", "byte", "float"} {
		if strings.HasPrefix(rest, p) {
			return true
		}
	}
	return word == "type" && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z'
}
