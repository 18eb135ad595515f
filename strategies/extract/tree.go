package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// change is an edit of a file.
type change struct {
	path           string
	added, removed []string // lines with content
	created        bool
	message        int
}

// commit is a commit of the assistant.
type commit struct {
	hash, subject string
	message       int
}

const (
	maxChanges   = 400
	maxLines     = 40 // of a change
	maxCommits   = 500
	maxChecks    = 200
	maxCodeLine  = 160
	maxRemembers = 40
)

// tree follows the files of a session: edits, commits, checks and failures. Its memory is bounded.
type tree struct {
	changes   []*change
	commits   []commit
	checks    []*call // the newest run of each command that builds, tests or lints, the newest last
	failures  []*call // that did not succeed since
	committed int     // the message of the newest commit, 0 for none
	edited    int     // the message of the newest edit that formats nothing
	read      []string
	// ran holds the messages of the newest runs of commands.
	ran map[string]int
}

// changesOf returns the edits that the arguments of a call describe by their shape: an old and a new text, a content with a
// path, a patch, or a command line that writes a file.
func changesOf(fs []field, c *call) []*change {
	if c.isCommand {
		if cmd := lookup(fs, commandKeys...); strings.Contains(cmd, "*** Begin Patch") {
			return patchChanges(cmd, c.message)
		}
		var out []*change
		for i := range c.commands {
			for _, f := range c.commands[i].edited() {
				out = append(out, &change{path: strings.Clone(f), message: c.message})
			}
		}
		return out
	}
	var out []*change
	var cur *change
	file := ""
	if len(c.paths) > 0 {
		file = c.paths[0]
	}
	for i := range fs {
		f := &fs[i]
		key := strings.ToLower(f.key)
		switch {
		case isPatch(f.value):
			out = append(out, patchChanges(f.value, c.message)...)
		case pathKey(key) && f.isShort():
			file = f.value
		case file != "" && isNewText(key) && !isTruth(f.value):
			cur = &change{path: strings.Clone(file), message: c.message}
			cur.added, cur.removed = differ(oldText(fs, i), f.value)
			out = append(out, cur)
		case file != "" && contentKeys[key] && c.argBytes > len(file)+20:
			cur = &change{path: strings.Clone(file), created: true, message: c.message}
			cur.added, _ = differ("", f.value)
			out = append(out, cur)
		}
	}
	return out
}

// oldText returns the old text of an edit, of which the new one is at i: the nearest before it in the same element of a list, or
// the next after it.
func oldText(fs []field, i int) string {
	for _, step := range []int{-1, 1} {
		for j := i + step; j >= 0 && j < len(fs) && fs[j].row == fs[i].row; j += step {
			key := strings.ToLower(fs[j].key)
			if isNewText(key) {
				break
			}
			if strings.Contains(key, "old") || key == "search" || key == "find" {
				return fs[j].value
			}
		}
	}
	return ""
}

// isNewText reports whether an argument is the new text of a part of a file, by its key.
func isNewText(key string) bool {
	return strings.Contains(key, "new") && !contentKeys[key] || strings.Contains(key, "replace") || key == "code_edit"
}

// isPatch reports whether a text is a unified difference or a patch of an agent.
func isPatch(s string) bool {
	return strings.Contains(s, "*** Begin Patch") || strings.Contains(s, "\n+++ ") && strings.Contains(s, "\n@@")
}

// patchChanges returns the edits of a patch.
func patchChanges(s string, message int) []*change {
	var out []*change
	var cur *change
	begin := func(file string, created bool) {
		file, _, _ = strings.Cut(file, "\t")
		cur = &change{path: strings.Clone(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(file), "b/"), "a/")), created: created, message: message}
		out = append(out, cur)
	}
	for l := range strings.Lines(text.Head(s, 200_000)) {
		l = strings.TrimRight(l, "\r\n")
		verb, file, ok := strings.Cut(l, " File: ")
		switch {
		case ok && slices.Contains([]string{"*** Update", "*** Add", "*** Delete"}, verb):
			begin(file, verb == "*** Add")
		case strings.HasPrefix(l, "+++ ") && l != "+++ /dev/null":
			begin(l[len("+++ "):], false)
		case cur == nil || len(l) < 2:
		case l[0] == '+' && !strings.HasPrefix(l, "+++"):
			cur.added = appendCode(cur.added, l[1:])
		case l[0] == '-' && !strings.HasPrefix(l, "---"):
			cur.removed = appendCode(cur.removed, l[1:])
		}
	}
	return out
}

// differ returns the lines of a new text that an old one has not, and the other way round.
func differ(before, after string) (added, removed []string) {
	was, is := map[string]bool{}, map[string]bool{}
	before, after = text.Head(before, 200_000), text.Head(after, 200_000)
	for l := range strings.Lines(before) {
		was[strings.TrimSpace(l)] = true
	}
	for l := range strings.Lines(after) {
		if is[strings.TrimSpace(l)] = true; !was[strings.TrimSpace(l)] {
			added = appendCode(added, l)
		}
	}
	for l := range strings.Lines(before) {
		if !is[strings.TrimSpace(l)] {
			removed = appendCode(removed, l)
		}
	}
	return added, removed
}

// appendCode appends a line of code with at least three letters or digits, indented by one blank for each level.
func appendCode(lines []string, l string) []string {
	n := 0
	for _, r := range l {
		if prose.IsLetterOrDigit(r) {
			n++
		}
	}
	if n < 3 || len(lines) >= maxLines {
		return lines
	}
	indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
	depth := strings.Count(indent, "\t") + strings.Count(indent, " ")/indentWidth
	return append(lines, strings.Repeat(" ", min(depth, 8))+line(l, maxCodeLine))
}

// indentWidth is the number of blanks of a level of indentation.
const indentWidth = 4

// answered follows the result of a call.
func (t *tree) answered(c *call, result string) {
	if c.failed {
		t.failures = bounded(t.failures, c, maxRemembers)
	} else {
		t.failures = slices.DeleteFunc(t.failures, func(f *call) bool {
			f.madeAgain = f.tool == c.tool && repeats(c, f)
			return f.madeAgain
		})
		t.change(c, result)
	}
	if c.isCommand && !c.check && c.kind() == acts && !c.isSlight() { // a command that is run again after edits checks them
		before, ok := t.ran[c.text]
		c.check = ok && before < t.edited
		if len(t.ran) >= maxChecks || t.ran == nil {
			t.ran = map[string]int{}
		}
		t.ran[c.text] = c.message
	}
	if c.check {
		t.checks = slices.DeleteFunc(t.checks, func(k *call) bool { return repeats(c, k) })
		t.checks = bounded(t.checks, c, maxChecks)
	}
	if !c.isCommand && !c.failed && c.kind() == looks {
		for _, p := range c.paths {
			t.read = slices.DeleteFunc(t.read, func(r string) bool { return r == p })
			t.read = bounded(t.read, p, maxChecks)
		}
	}
}

// change follows the edits, commits and restored files of a call that did not fail.
func (t *tree) change(c *call, result string) {
	formats := c.isCommand && slices.ContainsFunc(c.commands, func(x command) bool { return x.formats() })
	for _, x := range c.changes {
		if strings.HasPrefix(x.path, scratch) {
			continue
		}
		if t.changes = bounded(t.changes, x, maxChanges); !formats {
			t.edited = x.message
		}
	}
	for i := range c.commands {
		words := c.commands[i].git()
		switch {
		case c.commands[i].program()[0] == "rm":
			gone := c.commands[i].program()[1:]
			isGone := func(p string) bool {
				return slices.ContainsFunc(gone, func(w string) bool { return len(w) > 2 && strings.HasSuffix(p, strings.TrimPrefix(w, "./")) })
			}
			t.changes = slices.DeleteFunc(t.changes, func(x *change) bool { return isGone(x.path) })
			t.read = slices.DeleteFunc(t.read, isGone)
		case len(words) == 0:
		case words[0] == "commit" && !slices.Contains(words, "--dry-run") && !c.inScratch:
			t.commit(c, words, result)
		case words[0] == "checkout" && slices.Contains(words, "--"), words[0] == "restore" && !slices.Contains(words, "--staged"):
			t.restore(func(p string) bool {
				return slices.ContainsFunc(words[1:], func(w string) bool { return w == "." || strings.HasSuffix(p, strings.TrimPrefix(w, "./")) })
			})
		case words[0] == "reset" && slices.Contains(words, "--hard"), words[0] == "stash" && (len(words) == 1 || words[1] == "push"):
			t.restore(func(string) bool { return true })
		}
	}
}

// scratch begins the paths of files and repositories that do not last.
const scratch = "/tmp/"

// commit adds the commit that a call made, by the line in which git reports it or by its message.
func (t *tree) commit(c *call, words []string, result string) {
	x := commit{message: c.message}
	for _, l := range prose.SplitLines(text.Head(result, 20_000)) {
		branch, subject, ok := strings.Cut(strings.TrimPrefix(l, "["), "] ")
		if at := strings.LastIndexByte(branch, ' '); ok && l[0] == '[' && at > 0 && isHash(branch[at+1:]) {
			x.hash, x.subject = strings.Clone(branch[at+1:]), strings.Clone(line(subject, 120))
			break
		}
	}
	i := slices.IndexFunc(words, func(w string) bool { return w == "-m" || w == "-am" || w == "--message" })
	if x.hash == "" && i >= 0 && i+1 < len(words) && !strings.HasPrefix(words[i+1], "$(") {
		x.subject = strings.Clone(line(words[i+1], 120))
	}
	t.commits, t.committed = bounded(t.commits, x, maxCommits), c.message
}

// restore drops the edits of files since the last commit.
func (t *tree) restore(of func(path string) bool) {
	t.changes = slices.DeleteFunc(t.changes, func(x *change) bool { return x.message > t.committed && of(x.path) })
}

// isHash reports whether a word is the hash of a commit.
func isHash(s string) bool {
	return len(s) >= 7 && len(s) <= 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// repeats reports whether a call repeats an earlier one: the same program on the same or on more, the same tool
// on the same file, or equal arguments.
func repeats(c, earlier *call) bool {
	if c.isCommand != earlier.isCommand {
		return false
	}
	if !c.isCommand {
		return c.same(earlier) || len(c.paths) > 0 && slices.Equal(c.paths, earlier.paths)
	}
	if c.check != earlier.check {
		return false
	}
	names := func(c *call) (out []string) {
		for i := range c.commands {
			if x := &c.commands[i]; x.checks() || !c.check && !x.looks() {
				words := slices.DeleteFunc(slices.Clone(x.program()), func(w string) bool { return strings.HasPrefix(w, "-") })
				out = append(out, strings.Join(words[:min(2, len(words))], " "))
			}
		}
		return out
	}
	return slices.ContainsFunc(names(c), func(n string) bool { return slices.Contains(names(earlier), n) })
}

// edits returns the edited files, the newest last, with their edits since the last commit, or all where there are none since.
func (t *tree) edits() (files []string, by map[string][]*change) {
	by = map[string][]*change{}
	at := map[string]int{}
	for i, x := range t.changes {
		if list := by[x.path]; len(list) > 0 && list[0].message <= t.committed && x.message > t.committed {
			by[x.path] = nil
		}
		by[x.path] = append(by[x.path], x)
		at[x.path] = i
	}
	for f := range by {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b string) int { return at[a] - at[b] })
	return files, by
}

// bounded appends to a list and drops its first element if it had limit.
func bounded[T any](list []T, x T, limit int) []T {
	if len(list) >= limit {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}
