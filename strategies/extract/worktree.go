package extract

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// gitCommand is a command of git with its arguments.
type gitCommand struct {
	name      string
	arguments []string
	folder    string // where it runs, "" if that is not known
	shown     bool   // its output is that of the call
}

// gitCommands returns the commands of git in a command line.
func gitCommands(line string) []gitCommand {
	if !strings.Contains(line, "git ") { // most lines
		return nil
	}
	var out []gitCommand
	folder := ""
	all := shellCommands(line)
	for i, x := range all {
		words := strings.Fields(x.text)
		if words[0] == "cd" && len(words) == 2 {
			folder = joinFolder(folder, words[1])
		}
		if words[0] != "git" {
			continue
		}
		g := gitCommand{folder: folder, shown: i == len(all)-1 && len(x.to) == 0}
		for words = words[1:]; len(words) > 1 && strings.HasPrefix(words[0], "-"); words = words[2:] {
			if words[0] == "-C" {
				g.folder = joinFolder(folder, words[1])
			}
		}
		if len(words) > 0 {
			g.name, g.arguments = words[0], words[1:]
			out = append(out, g)
		}
	}
	return out
}

func joinFolder(folder, to string) string {
	if folder == "" || path.IsAbs(to) {
		return path.Clean(to)
	}
	return path.Join(folder, to)
}

// has reports whether one of the flags is an argument.
func (g gitCommand) has(flags ...string) bool {
	return slices.ContainsFunc(g.arguments, func(a string) bool { return slices.Contains(flags, a) })
}

// stages reports whether a command changes nothing but the index.
func (g gitCommand) stages() bool {
	if g.name != "reset" {
		return g.name == "add"
	}
	for i, a := range g.arguments {
		if a == "--" {
			return true
		}
		if a != "-q" && a != "HEAD" && (i == 0 || g.arguments[0] != "HEAD") {
			return false
		}
	}
	return true
}

// unstagesAll reports whether nothing is staged after a command.
func (g gitCommand) unstagesAll() bool {
	return g.name == "reset" && !slices.ContainsFunc(g.arguments, func(a string) bool { return a != "HEAD" && a != "-q" })
}

// onlyStages reports whether a command line changes nothing but the index of a folder, "" for any.
func onlyStages(line, folder string) bool {
	if !strings.Contains(line, "git ") || !strings.Contains(line, " add") && !strings.Contains(line, " reset") {
		return false
	}
	for _, x := range shellCommands(line) {
		if !strings.HasPrefix(x.text, "git ") && !beginsWith(x.text, []string{"cd ", "printf ", "echo "}) {
			return false
		}
	}
	all := gitCommands(line)
	return len(all) > 0 && !slices.ContainsFunc(all, func(g gitCommand) bool {
		return !g.stages() || g.folder != "" && folder != "" && g.folder != folder
	})
}

// dropStaging drops the calls before one, since the newest commit, that only staged what it commits or takes out of the
// index of a folder.
func (s *history) dropStaging(by *toolCall, folder string) {
	for _, c := range s.sinceCommit() {
		if c != by && c.isShell && !c.undone && onlyStages(c.description, folder) {
			c.drop("staging that is over")
		}
	}
}

// dropRewrites drops the calls that only rewrote files, by patterns that tell no names, before all was discarded, and those
// that moved them in the index, if that was discarded, too.
func dropRewrites(calls []*toolCall, index bool) {
	for _, c := range calls {
		moves := strings.Count(c.description, "git mv ")
		if !c.isShell || len(c.paths) > 0 || c.undone || strings.Count(c.description, "git ") > moves || moves == 0 && !strings.Contains(c.description, "sed ") && !strings.Contains(c.description, "perl ") {
			continue // before the line is parsed
		}
		some := false
		if all := shellCommands(c.description); !slices.ContainsFunc(all, func(x shellCommand) bool {
			x.text = loopWords().ReplaceAllString(x.text, "")
			rewrites := rewriting().MatchString(x.text) || index && strings.HasPrefix(x.text, "git mv ")
			some = some || rewrites
			return !rewrites && x.text != "" && !passive[strings.Fields(x.text)[0]]
		}) && some {
			c.drop("discarded later")
		}
	}
}

var (
	rewriting = text.Pattern(`^(?:sed|perl)(?: +-[\w.]+)*? +(?:-[a-zA-Z0-9]*i|--in-place)`)
	passive   = text.Set(`cd for done if fi then [ ls echo mkdir cat`)
	loopWords = text.Pattern(`^(?:(?:do|then)(?: +|$))+`)
)

// restored returns the files of the working tree that a command replaces by those of a commit or of the index.
func (g gitCommand) restored() []string {
	switch dashes := slices.Index(g.arguments, "--"); {
	case g.name == "checkout" && dashes >= 0:
		return g.arguments[dashes+1:]
	case g.name == "checkout" && len(g.arguments) == 1 && g.arguments[0] == ".":
		return g.arguments
	case g.name != "restore" || g.has("--staged", "-S") && !g.has("--worktree", "-W"):
		return nil
	}
	var files []string
	for i, a := range g.arguments {
		if !strings.HasPrefix(a, "-") && (i == 0 || g.arguments[i-1] != "-s" && g.arguments[i-1] != "--source") {
			files = append(files, a)
		}
	}
	return files
}

// among returns which of some paths the files are, or are in. Of several paths that end with a name it is the shortest.
func (g gitCommand) among(files, paths []string) (out []string) {
	for _, f := range files {
		full, named := joinFolder(g.folder, f), []string(nil)
		for _, p := range paths {
			switch {
			case full == ".", strings.HasPrefix(p, full+"/"), !path.IsAbs(full) && strings.Contains("/"+p, "/"+full+"/"):
				out = append(out, p)
			case p == full, !path.IsAbs(full) && strings.HasSuffix(p, "/"+full), !path.IsAbs(p) && strings.HasSuffix(full, "/"+p):
				named = append(named, p)
			}
		}
		if len(named) > 0 {
			out = append(out, slices.MinFunc(named, func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
		}
	}
	return out
}

// inWork reports whether a folder, "" if it is not known, has files that were edited or, where it is not known where
// these are, is that of the work.
func (s *history) inWork(folder string) bool {
	if folder == "" || folder == "." {
		return true
	}
	known := false
	for p, f := range s.files {
		if f.changes > 0 && (strings.HasPrefix(p, folder+"/") || !path.IsAbs(folder) && strings.Contains("/"+p, "/"+folder+"/")) {
			return true
		}
		known = known || f.changes > 0 && path.IsAbs(p)
	}
	return !known && folder == s.folder
}

// readGit takes back the commits that commands of git reset, and the edits without a commit that they discarded, or that a
// working tree without changes shows to be gone.
func (s *history) readGit(c *toolCall, output string) {
	clean := cleanTree().MatchString(text.Tail(output, maxLine))
	for _, g := range gitCommands(c.command) {
		if !s.inWork(g.folder) {
			clean = false
			continue
		}
		if g.name == "reset" {
			s.undoCommits(g)
		}
		if c.commits || g.unstagesAll() {
			s.dropStaging(c, g.folder)
		}
		edits := s.sinceCommit()
		if s.stashed != nil { // what it has is not in the tree
			edits = edits[slices.Index(edits, s.stashed)+1:]
		}
		switch files := g.restored(); {
		case g.name == "reset" && g.has("--hard"):
			s.discards = true
			dropRewrites(edits, true)
			s.takeBack(c, edits, append(s.tracked(edits), s.edited...))
		case len(files) > 0:
			if s.discards = true; slices.Contains(files, ".") && (g.folder == "" || g.folder == s.folder) {
				dropRewrites(edits, false)
			}
			s.takeBack(c, edits, g.among(files, append(s.tracked(edits), s.edited...)))
		case g.name == "status":
			clean = clean || g.shown && g.has("-s", "--short", "--porcelain") && len(g.arguments) == 1 && strings.TrimSpace(output) == ""
		case g.name != "stash":
		case g.has("pop", "apply"):
			s.stashed = nil
		case g.has("drop", "clear"):
			if s.stashed != nil {
				edits := s.sinceCommit()
				edits = edits[:max(0, slices.Index(edits, s.stashed))]
				s.takeBack(c, edits, append(s.tracked(edits), s.edited...))
			}
			s.stashed = nil
		case !g.has("list", "show", "--"):
			s.stashed = c
		}
	}
	if clean = clean && !c.commits && s.stashed == nil; clean && s.discards {
		edits := s.sinceCommit()
		s.takeBack(c, edits, append(editedPaths(edits), s.edited...))
	}
	c.committed = c.committed || clean
}

// nothingStaged is what git says instead of a commit.
var nothingStaged = text.Pattern(`\b(?:no changes|nothing) added to commit\b`)

var (
	// cleanTree is the status of a working tree without changes.
	cleanTree = text.Pattern(`(?i)\bnothing to commit\b|\bworking (?:tree|directory) clean\b`)
	// folderChange is the change to a folder, scratchFolder one for temporary files.
	folderChange  = text.Pattern(`\bcd "?([^\s;&|"]+)`)
	scratchFolder = text.Pattern(`^(?:(?:/private)?/tmp\b|/var/folders/|/dev/shm\b|\$\(mktemp\b|\$\{?TE?MP(?:DIR)?\b)`)
	// resetTo is what a branch is reset to if that is before its newest commits: HEAD^^, HEAD~2.
	resetTo = text.Pattern(`^HEAD(?:(\^+)|~(\d*))$`)
)

// sinceCommit returns the calls after the newest commit.
func (s *history) sinceCommit() []*toolCall {
	since := len(s.calls)
	for since > 0 && !s.calls[since-1].committed {
		since--
	}
	return s.calls[since:]
}

// editedPaths returns the files that calls edited.
func editedPaths(calls []*toolCall) (paths []string) {
	for _, c := range calls {
		for _, p := range c.paths {
			if c.edited() && !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// tracked is editedPaths without the files that are new since the newest commit: git knows nothing of them.
func (s *history) tracked(calls []*toolCall) []string {
	return slices.DeleteFunc(editedPaths(calls), func(p string) bool {
		f := s.files[p]
		if f == nil || !f.created {
			return false
		}
		earlier := f.changes
		for _, c := range calls {
			if c.edited() && slices.Contains(c.paths, p) {
				earlier--
			}
		}
		return earlier <= 0
	})
}

// takeBack takes edits of some files out of the calls that made them. by is the call that discarded them, nil for none.
func (s *history) takeBack(by *toolCall, calls []*toolCall, files []string) {
	gone := func(p string) bool { return slices.Contains(files, p) }
	for _, names := range []map[string]touch{s.removed, s.touched} {
		maps.DeleteFunc(names, func(_ string, t touch) bool { return gone(t.file) })
	}
	if s.discardedBy = by; by != nil {
		for _, name := range s.edited {
			if gone(name) {
				s.discarded = appendNew(s.discarded, name)
			}
		}
		s.edited = slices.DeleteFunc(s.edited, gone)
	}
	for _, c := range calls {
		if !c.edited() {
			continue
		}
		kept := c.paths[:0:0]
		for _, p := range c.paths {
			if !gone(p) {
				kept = append(kept, p)
				continue
			}
			if !strings.Contains(p, plansFolder) { // it is in no repository
				s.discarded = appendNew(s.discarded, p)
			}
			if f := s.files[p]; f != nil {
				if f.changes, f.declares = f.changes-1, nil; f.changes <= 0 && (f.reads == 0 || f.created) {
					delete(s.files, p)
				}
			}
		}
		if c.paths = kept; len(kept) == 0 && !c.runsToo {
			c.drop("discarded later")
		}
		if c.change != nil {
			c.change.files = slices.DeleteFunc(c.change.files, func(e *edit) bool { return gone(e.path) })
		}
	}
}

// undoCommits takes the newest commits back that a branch is reset to before.
func (s *history) undoCommits(g gitCommand) {
	n := 0
	for _, a := range g.arguments {
		if m := resetTo().FindStringSubmatch(a); m != nil {
			if n = max(1, len(m[1])); m[2] != "" {
				n, _ = strconv.Atoi(m[2])
			}
		}
	}
	for i, c := range slices.Backward(s.calls) {
		if n == 0 {
			return
		}
		if !c.commits || !c.committed {
			continue
		}
		n--
		for _, later := range s.calls[i:] { // the tree is as it was before
			later.committed = false
		}
		if c.outcome = resetLater + c.outcome; g.has("--hard") {
			c.drop("reset later")
		}
	}
}

// resetLater begins the outcome of a commit that was taken back.
const resetLater = "reset later: "

// inScratch reports whether a command works in a folder for temporary files, where the work is not.
func (s *history) inScratch(command string) bool {
	if !strings.Contains(command, "cd ") || len(s.files) == 0 { // most commands
		return false
	}
	folder := ""
	for _, m := range folderChange().FindAllStringSubmatch(command, -1) {
		folder = joinFolder(folder, m[1])
	}
	return scratchFolder().MatchString(folder) && !s.inWork(folder)
}

// saysCommitted reports whether the user says that what was edited was committed.
func saysCommitted(said string) bool {
	return slices.ContainsFunc(prose.Sentences(said), func(x string) bool {
		return userCommitted().MatchString(x) && !prose.IsQuestion(x) && !unlikely().MatchString(x)
	})
}

var (
	userCommitted = text.Pattern(`(?i)\bi(?:'ve| have)? (?:just |already |now )*(?:committed|pushed|merged|did an? [\w/ ]*(?:commit|push))\b`)
	unlikely      = text.Pattern(`(?i)\b(?:if|before|until|unless|nothing|not|when|once)\b`)
)

// isCommit reports whether a call is a commit, by its tool or its command.
func isCommit(tool, command string) bool {
	if command == "" {
		words := nameWords(tool)
		return slices.Contains(words, "commit") && !looks(tool) && !slices.ContainsFunc(words, func(w string) bool { return noCommits[w] })
	}
	return slices.ContainsFunc(shellCommands(command), func(c shellCommand) bool {
		return committing().MatchString(c.text) && !strings.Contains(c.text, "--dry-run") && !strings.Contains(c.text, "--help")
	})
}

// noCommits are words of tools that do something else with a commit.
var noCommits = text.Set(`comment comments message status verify revert`)

// onlyCommits reports whether a command line does nothing but one commit of what it adds, and checks.
func onlyCommits(command string) bool {
	commits := 0
	for _, c := range shellCommands(command) {
		switch {
		case committing().MatchString(c.text):
			commits++
		case !beginsWith(c.text, []string{"cd ", "git add ", "git status "}) && !attemptsOf("", c.text)[0].checks:
			return false
		}
	}
	return commits == 1
}
