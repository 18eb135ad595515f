package extract

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// addCall adds a tool call with its redacted arguments.
func (s *history) addCall(id, name, arguments string, fs []argument.Field) {
	c := &toolCall{id: strings.Clone(id), tool: strings.Clone(text.Head(prose.OneLine(name), 64)), day: s.day, after: s.requests, at: s.at, changes: changesFiles(name, fs), paths: argumentPaths(fs), chosen: -1}
	c.command, c.fields = strings.Clone(text.Head(rawCommand(fs), maxHandleInput)), argument.Short(fs)
	scratch := s.inScratch(c.command)
	c.commits, c.isShell = isCommit(c.tool, c.command) && !scratch, c.command != ""
	c.onlyCommits = c.commits && shell.OnlyCommits(c.command)
	if written, only := shell.WrittenFiles(c.command); len(written) > 0 && !c.changes && !scratch {
		c.paths, c.changes, c.runsToo = written, true, !only
	}
	if len(c.paths) == 0 {
		c.paths = shell.ShownFiles(c.command)
	}
	if c.isShell {
		s.joinFolder(c)
	}
	command := s.inFolder(commandLine(c.command))
	switch acts, known := s.configured(name); {
	case known:
		c.acts, c.changes = acts, acts && c.changes && len(c.paths) > 0
	default:
		c.acts = (!c.changes || c.runsToo) && (len(c.paths) == 0 || toolname.Words(name)[0] != "open") && (actsByVerb(name, c.command) || writesData(fs) || writesByMethod(fs) || command == "" && len(c.paths) == 0 && len(c.fields) > 1 && s.isConfirmed() && toolname.Takes(name))
	}
	if command == "" && len(c.paths) == 0 {
		c.arguments = c.fields
		for _, f := range c.arguments {
			s.mention(f.Value)
		}
	}
	if i := slices.IndexFunc(fs, func(f argument.Field) bool { return f.Key == "plan" && strings.Contains(f.Value, "\n") }); i >= 0 && slices.Contains(toolname.Words(name), "plan") {
		c.plan, c.arguments = strings.Clone(text.Head(fs[i].Value, maxReply)), nil
		command = prose.FirstLine(prose.Unmarked(c.plan))
	}
	c.description = cmp.Or(command, searched(c.fields, c.paths), c.places(fs), firstValue(fs), prose.Excerpt(text.Head(arguments, 2*maxDescription), maxDescription))
	s.spoken = true
	s.currentTurn().calls++
	for _, p := range c.paths {
		if c.changes || !slices.Contains(toolname.Words(name), "find") && (path.Ext(p) != "" || searched(c.fields, c.paths) == "") { // a folder is searched, not read
			s.recordFile(p, c.changes)
		}
	}
	if c.changes {
		s.recordChange(c, fs)
	}
	words := toolname.Words(name)
	c.administers = slices.Contains(words, "plan") && slices.Contains(words, "mode")
	if slices.ContainsFunc(fs, func(f argument.Field) bool { return f.Object == 1 && (f.Key == "taskId" || f.Key == "task_id") }) && !slices.Contains(words, "create") {
		c.administers = true // it sets the status of a task, or its order
	} else if open, finished, ok := parseTodos(fs); ok {
		s.todos, s.tasksLeft, s.todosAt, c.administers = open, 0, s.messages, true
		s.finished = slices.DeleteFunc(s.finished, func(x string) bool { // taken up again
			return slices.ContainsFunc(open, func(o string) bool { return strings.HasPrefix(o, x+" (") })
		})
		for _, x := range finished {
			s.finished = appendNew(s.finished, x)
		}
	}
	if last := s.lastOf(c.tool); c.acts && last != nil && offered(last.arguments, last.result, c.arguments) {
		last.failed, last.undone, last.outcome = true, true, "not made: another value was offered, and taken next"
	}
	s.record(c)
	s.openCalls = appendBounded(s.openCalls, c, maxOpenCalls)
}

// places returns the files of a call, with the lines that it changes.
func (c *toolCall) places(fs []argument.Field) string {
	files := strings.Join(c.paths, ", ")
	if c.changes && len(c.paths) == 1 {
		files += editedRange(fs)
	}
	return files
}

// inFolder returns a command with paths from the folder of the work, the first that one changes to.
func (s *history) inFolder(command string) string {
	m := folderFirst().FindStringSubmatch(command)
	switch {
	case m != nil && s.folder == "" && !s.inScratch(command):
		s.folder = strings.Clone(m[1])
	case s.folder != "" && strings.Contains(command, s.folder):
		if m != nil && m[1] == s.folder {
			command = command[len(m[0]):]
		}
		command = withoutRoot(strings.ReplaceAll(command, "git -C "+s.folder+" ", "git "), s.folder+"/")
	}
	return command
}

// withoutRoot returns a command with the paths below a folder as they are from there.
func withoutRoot(command, root string) string {
	var b strings.Builder
	for {
		i := strings.Index(command, root)
		if i < 0 {
			return b.String() + command
		}
		end := i + len(root)
		b.WriteString(command[:i])
		if i > 0 && strings.IndexByte(" '\"=", command[i-1]) < 0 || end == len(command) || !charclass.Word.Has(command[end]) {
			b.WriteString(root)
		}
		command = command[end:]
	}
}

var folderFirst = text.Pattern(`^cd (/[^\s;&|]+) *(?:&&|;|\n)\s*`)

// lastOf returns the newest call of a tool that was done, if only perhaps; nil for none.
func (s *history) lastOf(tool string) *toolCall {
	for _, c := range slices.Backward(s.calls) {
		if c.tool == tool && c.done && (!c.failed || strings.HasPrefix(c.outcome, notConfirmed)) {
			return c
		}
	}
	return nil
}

// offered reports whether a result has another value than was asked for, and the next call asks for that
// one instead, with all else the same: what it answered was not made.
func offered(asked, result, next []argument.Field) bool {
	taken := 0
	for _, n := range next {
		switch {
		case slices.ContainsFunc(asked, func(a argument.Field) bool { return a.Key == n.Key && a.Value == n.Value }):
		case slices.ContainsFunc(asked, func(a argument.Field) bool { return a.Key == n.Key }) &&
			slices.ContainsFunc(result, func(r argument.Field) bool { return r.Key == n.Key && r.Value == n.Value }):
			taken++
		default:
			return false
		}
	}
	return taken > 0 && len(asked) == len(next)
}

// searched returns what a call looks for in files, "" for none.
func searched(fs []argument.Field, paths []string) string {
	what := argument.Lookup(fs, "pattern", "query", "regex")
	if what == "" || len(paths) == 0 {
		return ""
	}
	return what + " in " + strings.Join(paths, ", ")
}

// nothingDone returns why a call did nothing, although its result reports no failure: the user
// refused it, or there is nothing in the result of what should have changed something.
func (c *toolCall) nothingDone(result string) string {
	switch {
	case refused().MatchString(text.Head(result, 200)):
		return refusedByUser
	case aborted().MatchString(text.Head(result, 200)):
		return "aborted"
	case strings.Contains(text.Head(result, 200), "Sibling tool call errored"):
		return "not run, another call failed"
	case c.acts && strings.TrimSpace(text.Head(result, 8)) == "[]": // {} and null may be all that is said
		return "nothing came of it"
	}
	return ""
}

// takeOpen takes the newest call with an id from those without a result; it returns an empty one for none.
func (s *history) takeOpen(id string) *toolCall {
	for i, c := range slices.Backward(s.openCalls) {
		if c.id == id {
			s.openCalls = slices.Delete(s.openCalls, i, i+1)
			return c
		}
	}
	return &toolCall{}
}

// addResult adds the result of a call, given by its head and its tail, and reports whether
// it is a listing.
func (s *history) addResult(c *toolCall, head, tail string) (listing bool) {
	c.done, s.unjudged = true, c
	if c.id != textID && strings.Contains(text.Tail(tail, maxLine), "(Open file: ") {
		s.text.readPrompt(tail)
	}
	s.launched = slices.Contains(toolname.Words(c.tool), "skill") && strings.HasPrefix(head, launching)
	listing = s.readObjects(c, head)
	defer s.noteHandles(c, head, tail)
	defer s.settleChange(c)
	s.shown = output{}
	if outcome := c.nothingDone(head); outcome != "" {
		c.failed, c.undone, c.outcome = true, true, outcome
		s.discountFiles(c)
		switch m := refusal().FindStringSubmatch(text.Head(head, maxRequest)); {
		case m == nil:
		case c.changes && !c.isShell:
			s.addUser(m[1], m[1])
		default: // a page or a command may print these words, too
			c.outcome += refusalSays + prose.OneLine(text.Head(m[1], maxLine))
		}
		return listing
	}
	// A long file that was read may begin with the word "error".
	isFile := len(c.paths) > 0 && !c.changes && len(head) > 2000
	line := toolresult.FailureLine(head, tail)
	if line == "" && !c.ofSubagent() && shell.IsCheck(c.description) {
		line = toolresult.Finding(tail)
	}
	if line == "" && shell.Runs(c.command) {
		line = toolresult.RunFailure(tail)
	}
	if line == "" && !c.isShell && !c.administers && (len(c.paths) == 0 || !toolname.Looks(c.tool)) {
		line = toolresult.ServiceFailure(c.tool, c.arguments, head)
	}
	if strings.HasPrefix(line, toolresult.RefusedEdit) { // what is wrong with it says more
		line = cmp.Or(strings.Trim(lintLine().FindString(head), "-* \n"), line)
	}
	line = prose.OneLine(text.Head(line, maxLine))
	if c.tool == "" && (line != "" || exitLine().MatchString(tail)) {
		s.unlinked, _ = toolresult.FailureLines(head, tail)
	}
	switch {
	case s.succeeded != nil && s.succeeded.MatchString(head):
		line = ""
	case s.failed != nil && s.failed.MatchString(head):
		line, isFile = prose.OneLine(text.Head(s.failed.FindString(head), maxLine)), false
	}
	if line != "" && !isFile {
		if commit := committed().FindString(tail); commit != "" { // and what followed it failed
			c.committed, line = true, commit+"; "+line
		}
		c.failed, s.discards = true, s.discards || strings.Contains(c.command, "git stash")
		failures, n := toolresult.FailureLines(head, tail)
		c.failures = slices.DeleteFunc(failures, func(l string) bool { return strings.HasPrefix(l, toolresult.RefusedEdit) || l == line })
		if at := slices.IndexFunc(c.failures, toolresult.FaultAt); at >= 0 && toolresult.SaysOnlyFailed(line) { // that says more
			line = c.failures[at]
			c.failures = slices.Delete(c.failures, at, at+1)
		}
		if strings.HasSuffix(line, ":") && len(c.failures) > 0 { // "2 issues:"
			line, c.failures = line+" "+c.failures[0], c.failures[1:]
		}
		if n > toolresult.MaxFailures && !c.committed && !numbering().MatchString(line) {
			line = fmt.Sprintf("%d lines of failures: %s", n, line)
		}
		c.outcome = prose.Excerpt(line, maxDescription)
		s.discountFiles(c)
		return listing
	}
	if _, known := s.configured(c.tool); !known && !c.isShell && !c.changes && !c.administers && len(c.paths) == 0 && !toolname.Looks(c.tool) && c.statesAct() {
		c.acts = true
	}
	switch whole := strings.TrimSpace(head); {
	case listing: // what it lists tells more
	case whole != "" && strings.IndexByte("[{", whole[0]) >= 0 && strings.IndexByte("]}", whole[len(whole)-1]) >= 0 && !strings.Contains(whole, "\n"): // JSON
		if !text.Longer(whole, maxDescription) { // a part of more tells nothing
			c.outcome = prose.OneLine(whole)
		}
	default:
		line := ""
		if c.isShell && !strings.Contains(c.description, "--reverse") && listingCommits().MatchString(shell.WithoutFolder(c.description)) { // the newest comes first
			line = listedCommit().FindString(prose.FirstLine(head))
		}
		if c.ofSubagent() {
			line = reportLine(head)
		}
		line = c.countPassed(cmp.Or(line, yielded().FindString(text.Head(head, maxLine)), resultLine(c.command, tail)), head, tail)
		c.outcome = prose.Excerpt(strings.ReplaceAll(prose.Unmarked(line), "**", ""), maxDescription)
	}
	if f := s.files[strings.Join(c.paths, "")]; f != nil && c.changes && f.changes == 1 {
		f.created = f.reads == 0 && c.change.from == 0 && creating().MatchString(text.Head(head, maxLine))
	}
	c.administers = c.administers || s.launched
	if c.plan != "" && approving().MatchString(head) {
		s.currentTurn().plan, c.administers = planLines(c.plan, head), true
		c.outcome = "approved by the user"
	}
	if !listing && !c.acts && !c.changes && !c.administers {
		if s.shown = (output{c, strings.Clone(text.Head(head, maxReply))}); c.isSilent(head) {
			s.shown.text = noOutput
		}
	}
	if c.commits || c.passed() {
		s.checkedAt = s.editedAt
	}
	s.moveFiles(c.command)
	s.readGit(c, tail)
	if c.commits && !nothingStaged().MatchString(tail) {
		c.committed, s.discarded, s.discards = true, nil, false
	}
	if c.edited() {
		if !c.isShell && strings.HasPrefix(c.description, c.paths[0]+" ") { // the lines are others now
			c.description = c.paths[0]
		}
		s.lackedBefore = len(s.currentTurn().lines)
		if f := s.files[strings.Join(c.paths, "")]; f == nil || !f.isNew() {
			s.saidBefore = s.lackedBefore
		}
	}
	return listing
}

// lintLine is a line of a linter for Python.
var lintLine = text.Pattern(`(?m)^\W*[EFW]\d{3} .+$`)

// launching begins the result of a call that loads a skill, whose text follows as a message of the user.
const launching = "Launching skill: "

// exitLine is a line of a program that runs others about one that failed.
var exitLine = text.Pattern(`(?im)^\W*exit(?:ed with)? (?:code|status):? *[1-9]`)

// literals returns a pattern of the lines with one of the texts, in any case; nil for none.
func literals(texts []string) *regexp.Regexp {
	if len(texts) == 0 {
		return nil
	}
	var quoted []string
	for _, s := range texts {
		quoted = append(quoted, regexp.QuoteMeta(s))
	}
	return regexp.MustCompile(`(?im)^.*(?:` + strings.Join(quoted, "|") + `).*$`)
}

// creating is the result of a call that made a file.
var creating = text.Pattern(`(?i)\b(?:created|creating)\b`)

// recordFile counts a read or a change of a file.
func (s *history) recordFile(path string, changed bool) {
	f := s.files[path]
	if f == nil {
		if len(s.files) >= maxFiles { // drop the less recent half
			for _, f := range s.recentFiles()[maxFiles/2:] {
				delete(s.files, f.path)
			}
		}
		f = &file{path: strings.Clone(path)}
		s.files[f.path] = f
	}
	if f.last = s.messages; changed {
		f.changed, s.editedAt = s.messages, s.messages
		f.changes++
	} else {
		f.reads++
	}
}

// discountFiles takes a call that failed back from the counts of its files.
func (s *history) discountFiles(c *toolCall) {
	if c.runsToo { // it wrote them all the same
		return
	}
	for _, p := range c.paths {
		f := s.files[p]
		switch {
		case f == nil:
			continue
		case c.changes:
			f.changes = max(f.changes-1, 0)
		default:
			f.reads = max(f.reads-1, 0)
		}
		if f.changes+f.reads == 0 {
			delete(s.files, p)
		}
	}
}

// recentFiles returns the files by their last use, newest first, changed ones before
// others.
func (s *history) recentFiles() []*file {
	return slices.SortedFunc(maps.Values(s.files), func(a, b *file) int {
		return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(b.changes, a.changes), cmp.Compare(a.path, b.path))
	})
}

// listedFiles returns recentFiles without folders of others, and without those that were only read by a part
// of the path of another.
func (s *history) listedFiles() []*file {
	paths := slices.Sorted(maps.Keys(s.files))
	named := map[string][]string{} // whole paths by their last parts
	for _, p := range paths {
		if path.IsAbs(p) {
			named[path.Base(p)] = append(named[path.Base(p)], p)
		}
	}
	return slices.DeleteFunc(s.recentFiles(), func(f *file) bool {
		if f.changes > 0 {
			return false
		}
		folder := strings.TrimSuffix(f.path, "/") + "/"
		i, _ := slices.BinarySearch(paths, folder+"\x00") // the first within it
		return i < len(paths) && strings.HasPrefix(paths[i], folder) ||
			!path.IsAbs(f.path) && slices.ContainsFunc(named[path.Base(f.path)], func(p string) bool { return strings.HasSuffix(p, "/"+strings.TrimPrefix(f.path, "./")) })
	})
}

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, s) // never fails
	return h.Sum32()
}

// refusedByUser is the outcome of a call that the user did not allow, refusalSays leads the words with which.
const (
	refusedByUser = "refused by the user"
	refusalSays   = ", its result says: "
)

// refusal is what the user said when refusing a call.
var refusal = text.Pattern(`(?is)\buser (?:said|says|wrote|replied|provided the following (?:reason|feedback)[^:\n]*)[: \n]+(.+)`)
