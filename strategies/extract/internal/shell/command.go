// Package shell reads command lines of a POSIX shell: the simple commands in them, the files that they show and write, what
// they change, check and do to a repository of git. Nothing is run, expanded or looked up; a line that is no valid one is
// read as far as it goes. The package knows nothing of calls and their results. Its functions are pure and safe for
// concurrent use.
package shell

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Command is a simple command.
type Command struct {
	Text       string
	Background bool     // it ends with &
	Follows    string   // the operator before it: &&, || or |
	To         []string // the files to which its output goes
}

// Commands returns the simple commands of a command line. What is quoted and what is in
// a here-document is not read as a command.
func Commands(s string) []Command {
	var out []Command
	var b strings.Builder
	operator := ""
	var to []string
	end := func(background bool) {
		if text := prose.OneLine(b.String()); text != "" {
			out = append(out, Command{text, background, operator, to})
			operator, to = "", nil
		} else if background && len(out) > 0 { // after a parenthesis
			out[len(out)-1].Background = true
		}
		b.Reset()
	}
	delimiter := "" // of the here-document that begins after the line
	for i := 0; i < len(s); i++ {
		after := s[i+1:]
		switch c := s[i]; {
		case c == '\\' && after != "":
			i++
			b.WriteByte(s[i])
		case c == '\'' || c == '"':
			n := strings.IndexByte(after, c)
			for c == '"' && n > 0 && after[n-1] == '\\' && strings.IndexByte(after[n+1:], c) >= 0 {
				n += 1 + strings.IndexByte(after[n+1:], c)
			}
			if n < 0 {
				n = len(after)
			}
			b.WriteString(after[:n])
			i += n + 1
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;", s[i-1]) >= 0): // a comment
			end := strings.IndexByte(after+"\n", '\n')
			if joined := strings.Index(after, "; "); joined >= 0 && end == len(after) { // lines that commandLine joined
				end = joined
			}
			i += end
		case c == '<' && strings.HasPrefix(after, "<<"):
			b.WriteString("<<<")
			i += 2
		case c == '<' && strings.HasPrefix(after, "<"):
			word, _, _ := strings.Cut(strings.TrimLeft(after[1:], "- "), "\n")
			if word = strings.TrimLeft(word, `'"`); word != "" {
				delimiter = word[:len(word)-len(strings.TrimLeft(word, hereChars))]
			}
			b.WriteString("<<")
			i++
		case c == '\n' && delimiter != "":
			end(false)
			n := strings.Index(s[i:]+"\n", "\n"+delimiter+"\n")
			if n < 0 {
				return out
			}
			i, delimiter = i+n+len(delimiter), ""
		case c == '>' && !strings.HasPrefix(after, "&") && (i == 0 || strings.IndexByte("023456789&<>=-", s[i-1]) < 0):
			file := strings.TrimLeft(after, ">|\"' ")
			to = append(to, file[:strings.IndexAny(file+"\n", " \t\n\"';&|<>()")])
			b.WriteByte(c)
		case c == '&' && (strings.HasPrefix(after, ">") || i > 0 && (s[i-1] == '>' || s[i-1] == '<')): // 2>&1, &> file
			b.WriteByte(c)
		case (c == '&' || c == '|') && after != "" && after[0] == c:
			end(false)
			operator = s[i : i+2]
			i++
		case c == '&':
			end(true)
		case c == '|':
			end(false)
			operator = "|"
		case c == ';' || c == '\n' || c == '(' || c == ')':
			end(false)
		default:
			b.WriteByte(c)
		}
	}
	end(false)
	return out
}

// hereChars are the characters of the delimiter of a here-document.
const hereChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// showing are programs that show the files they are given, and narrowing those that may come between.
var (
	showing   = text.Set(`cat open nl head tail less bat batcat sed`)
	narrowing = text.Set(`cd pwd echo printf true sort uniq`)
)

// ShownFiles returns the files that a command line shows, nil if it does anything else.
func ShownFiles(command string) []string {
	var files []string
	for _, c := range Commands(WithoutRedirections(command)) {
		words := strings.Fields(c.Text)
		if strings.ContainsAny(c.Text, "<>") || c.Background || !showing[words[0]] && !narrowing[words[0]] || words[0] == "sed" && !slices.Contains(words, "-n") {
			return nil
		}
		for _, w := range words[1:] {
			if showing[words[0]] && fileWord().MatchString(w) && !slices.Contains(files, w) {
				files = append(files, w)
			}
		}
	}
	return files
}

// selectors are programs of which the output is lines that they select from others.
var selectors = text.Set(`grep egrep fgrep rg ag awk sed cut jq column`)

// Selects reports whether the last command of a line prints what it selects from the output of another one.
func Selects(command string) bool {
	all := Commands(WithoutRedirections(command))
	return len(all) > 0 && all[len(all)-1].selects()
}

func (c Command) selects() bool {
	program, _, _ := strings.Cut(c.Text, " ")
	return c.Follows == "|" && selectors[program]
}

// fileWord is a word of a command that is the name of a file.
var fileWord = text.Pattern(`^[\w@~/.][\w@+~./-]*(?:\.\w+|/[\w-]+)$`)

// Runs reports whether a command line runs what builds, tests or does something, and does not show what is
// in files besides.
func Runs(command string) bool {
	some := false
	for _, c := range Commands(command) {
		if c.Follows != "|" && printing().MatchString(c.Text) {
			return false
		}
		some = some || !narrowing[strings.Fields(c.Text)[0]] && !beginsWith(WithoutFolder(c.Text), readCommands)
	}
	return some
}

// printing is a command that shows what is in files, or in the history of git.
var printing = text.Pattern(`^(?:cat|nl|head|tail|less|bat|sed|grep|egrep|rg|ag|awk|jq|find|xxd|git (?:-C \S+ )?(?:log|diff|show|blame|grep))\b`)

// WrittenFiles returns the files that a command line writes by itself: what is shown, printed or given in a
// here-document goes to them. only reports whether it does nothing else.
func WrittenFiles(command string) (files []string, only bool) {
	only = true
	for _, c := range Commands(command) {
		words := strings.Fields(c.Text)
		writes := showing[words[0]] || narrowing[words[0]] || words[0] == "awk" || words[0] == "tee"
		only = only && (writes || c.Prepares() || words[0] == "chmod" || beginsWith(c.Text, readCommands) && words[0] != "env" && !sends(c.Text))
		var found []string
		switch {
		case !writes:
		case words[0] == "tee":
			found = words[1:]
		case words[0] == "sed" && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-i") }):
			for len(words) > 1 && fileWord().MatchString(words[len(words)-1]) && !scriptEnd().MatchString(words[len(words)-1]) {
				found, words = append(found, words[len(words)-1]), words[:len(words)-1]
			}
			only = only && len(found) > 0 && scriptEnd().MatchString(words[len(words)-1]) // and no pattern of files
		default:
			found = c.To
		}
		for _, f := range found {
			if (fileWord().MatchString(f) || dotFile().MatchString(f)) && !passingFile().MatchString(f) && !slices.Contains(files, f) && len(files) < maxWritten {
				files = append(files, f)
			}
		}
	}
	return files, only && len(files) > 0
}

// maxWritten is the number of files of a command that are told as written.
const maxWritten = 8

var (
	// scriptEnd ends a script of sed, which names no file.
	scriptEnd = text.Pattern(`[/|#@,!][gpiIeMm\d]{0,3}$|\d[adp]$`)
	dotFile   = text.Pattern(`^(?:[\w@~/.-]*/)?(?:\.\w[\w.-]*|Makefile|Dockerfile|hosts)$`)
	// passingFile is one that is not kept.
	passingFile = text.Pattern(`^/(?:dev|tmp|proc)/|\.log$`)
)

// beginsWith reports whether a command begins with one of the given words.
func beginsWith(command string, words []string) bool {
	command += " "
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(command, w) })
}

// WithoutRedirections returns a command line without what it does with its output.
func WithoutRedirections(command string) string { return redirection().ReplaceAllString(command, "$1") }

// redirection is what a command does with its output, which has no effect on what it does.
var redirection = text.Pattern(`(?: *(?:2>&1|[12]?> */dev/null|\| *(?:tail|head) +(?:-n *)?-?\d+\b))+( |;|$)`)

// Prepares reports whether a command does nothing else than to make a place for files.
func (c Command) Prepares() bool { return preparing[strings.Fields(c.Text)[0]] }

var preparing = text.Set(`cd mkdir touch`)
