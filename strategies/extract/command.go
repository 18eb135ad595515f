package extract

import (
	"path"
	"slices"
	"strings"
)

// command is a simple command of a shell's command line.
type command struct {
	words []string
	to    []string // the files to which its output goes
}

// parseCommands returns the simple commands of a command line. Quoted text stays in one word, here-documents are left out,
// and nothing is expanded.
func parseCommands(s string) []command {
	var out []command
	var c command
	var word strings.Builder
	inWord := false
	var target bool // the next word is a file
	endWord := func() {
		if inWord && target {
			c.to = append(c.to, word.String())
		} else if inWord {
			c.words = append(c.words, word.String())
		}
		target = target && !inWord
		inWord = false
		word.Reset()
	}
	end := func() {
		endWord()
		if len(c.words) > 0 {
			out = append(out, c)
		}
		c, target = command{}, false
	}
	delimiter := "" // of the here-document after this line
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '\\' && i+1 < len(s):
			if i++; s[i] != '\n' {
				word.WriteByte(s[i])
				inWord = true
			}
		case b == '\'' || b == '"':
			n := i + 1
			for n < len(s) && s[n] != b {
				if s[n] == '\\' && b == '"' {
					n++
				}
				n++
			}
			word.WriteString(s[i+1 : min(n, len(s))])
			inWord, i = true, n
		case b == '#' && !inWord:
			for i+1 < len(s) && s[i+1] != '\n' {
				i++
			}
		case b == '<' && strings.HasPrefix(s[i:], "<<") && !strings.HasPrefix(s[i:], "<<<"):
			name := strings.TrimLeft(s[i+2:], "-~ '\"")
			delimiter = name[:len(name)-len(strings.TrimLeft(name, letters))]
			i = len(s) - len(name) + len(delimiter) - 1
		case b == '\n' && delimiter != "":
			end()
			n := strings.Index(s[i:], "\n"+delimiter)
			if n < 0 {
				return out
			}
			i, delimiter = i+n+len(delimiter), ""
		case b == '>' && word.String() == "2", b == '>' && strings.HasPrefix(s[i:], ">&"):
			inWord = false
			word.Reset()
			for i+1 < len(s) && strings.IndexByte(" ;|\n", s[i+1]) < 0 {
				i++
			}
		case b == '>':
			endWord()
			target = true
		case b == ' ' || b == '\t':
			endWord()
		case strings.IndexByte("\n;|&()", b) >= 0:
			end()
		default:
			word.WriteByte(b)
			inWord = true
		}
	}
	end()
	return out
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"

// program returns the words of a command from its program on, without variables and programs that run another one.
func (c *command) program() []string {
	words := c.words
	for len(words) > 1 {
		name := words[0]
		assigns := strings.Contains(name, "=") && !strings.ContainsAny(name[:1], "/.-=")
		if !assigns && !running[name] && !strings.HasPrefix(name, "-") {
			break
		}
		if words = words[1:]; name == "timeout" && len(words) > 1 {
			words = words[1:]
		}
	}
	return words
}

// looks reports whether a command changes nothing.
func (c *command) looks() bool {
	words := c.program()
	name := path.Base(words[0])
	if len(c.to) > 0 && c.to[0] != "/dev/null" {
		return strings.HasPrefix(c.to[0], "/tmp/")
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(options, w) })
	}
	switch {
	case strings.Contains(name, "="): // sets a variable
		return true
	case name == "git":
		switch words = c.git(); {
		case len(words) == 0:
			return false
		case words[0] == "branch" || words[0] == "tag":
			return len(words) == 1 || has("-a", "-r", "--list", "-l", "--show-current", "--contains")
		case len(words) > 1 && lookingAt[words[1]]:
			return true
		}
		return lookingAt[words[0]] && !has("set", "add", "remove")
	case withSubcommands[name]:
		return slices.ContainsFunc(words[1:min(4, len(words))], func(w string) bool { return lookingAt[w] }) && !has("-X", "--method", "-f", "-F", "--field", "--raw-field")
	case name == "sed":
		return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-i") })
	}
	return looking[name] || has("--version", "--help")
}

// checks reports whether a command builds, tests or lints.
func (c *command) checks() bool {
	if c.formats() || c.git() != nil {
		return false
	}
	for _, w := range c.program()[:min(4, len(c.program()))] {
		if strings.Contains(w, " ") {
			continue
		}
		for part := range strings.FieldsFuncSeq(path.Base(w), func(r rune) bool { return r == ':' || r == '-' || r == '_' || r == '.' }) {
			if checking[part] {
				return true
			}
		}
		if checking[path.Base(w)] || w == "build" {
			return true
		}
	}
	return false
}

// formats reports whether a command changes the form of files alone.
func (c *command) formats() bool {
	return slices.ContainsFunc(c.program()[:min(3, len(c.program()))], func(w string) bool { return formatting[path.Base(w)] })
}

// git returns the subcommand and its arguments of a command of git, nil for others.
func (c *command) git() []string {
	words := c.program()
	if path.Base(words[0]) != "git" {
		return nil
	}
	for words = words[1:]; len(words) > 0 && strings.HasPrefix(words[0], "-"); words = words[1:] {
		if words[0] == "-C" || words[0] == "-c" {
			words = words[1:]
		}
		if len(words) == 0 {
			return nil
		}
	}
	return words
}

// edited returns the files that a command writes or edits in place.
func (c *command) edited() []string {
	var out []string
	for _, f := range c.to {
		if !strings.HasPrefix(f, "/dev/") && !strings.HasPrefix(f, "/tmp/") && !strings.HasPrefix(f, "&") {
			out = append(out, f)
		}
	}
	if words := c.program(); words[0] == "tee" && len(words) > 1 {
		out = append(out, words[len(words)-1])
	} else if words[0] == "sed" && !c.looks() && len(words) > 2 {
		out = append(out, words[len(words)-1])
	}
	return out
}
