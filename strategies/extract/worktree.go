package extract

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// dropStaging drops the calls before one, since the newest commit, that only staged what it commits or takes out of the
// index of a folder.
func (s *history) dropStaging(by *toolCall, folder string) {
	for _, c := range s.sinceCommit() {
		if c != by && c.isShell && !c.undone && shell.OnlyStages(c.description, folder) {
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
		if all := shell.Commands(c.description); !slices.ContainsFunc(all, func(x shell.Command) bool {
			x.Text = loopWords().ReplaceAllString(x.Text, "")
			rewrites := rewriting().MatchString(x.Text) || index && strings.HasPrefix(x.Text, "git mv ")
			some = some || rewrites
			return !rewrites && x.Text != "" && !passive[strings.Fields(x.Text)[0]]
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
	for _, g := range shell.GitCommands(c.command) {
		if !s.inWork(g.Folder) {
			clean = false
			continue
		}
		switch {
		case g.Name == "reset":
			s.undoCommits(g)
		case c.commits && g.Name == "commit" && g.Has("--amend"):
			s.amend(c)
		case g.Name == "cherry-pick", g.Name == "rebase":
			s.readHashes(c, committed().FindAllStringSubmatch(output, maxListed))
		case g.Name == "log" && !slices.ContainsFunc(g.Arguments, func(a string) bool { return !strings.HasPrefix(a, "-") }):
			s.readHashes(c, loggedCommit().FindAllStringSubmatch(output, maxListed))
		}
		if c.commits || g.UnstagesAll() {
			s.dropStaging(c, g.Folder)
		}
		edits := s.sinceCommit()
		if s.stashed != nil { // what it has is not in the tree
			edits = edits[slices.Index(edits, s.stashed)+1:]
		}
		switch files := g.Restored(); {
		case g.Name == "reset" && g.Has("--hard"):
			s.discards = true
			dropRewrites(edits, true)
			s.takeBack(c, edits, append(s.tracked(edits), s.edited...))
		case len(files) > 0:
			if s.discards = true; slices.Contains(files, ".") && (g.Folder == "" || g.Folder == s.folder) {
				dropRewrites(edits, false)
			}
			s.takeBack(c, edits, g.Among(files, append(s.tracked(edits), s.edited...)))
		case g.Name == "status":
			clean = clean || g.Shown && g.Has("-s", "--short", "--porcelain") && len(g.Arguments) == 1 && strings.TrimSpace(output) == ""
		case g.Name != "stash":
		case g.Has("pop", "apply"):
			s.stashed = nil
		case g.Has("drop", "clear"):
			if s.stashed != nil {
				edits := s.sinceCommit()
				edits = edits[:max(0, slices.Index(edits, s.stashed))]
				s.takeBack(c, edits, append(s.tracked(edits), s.edited...))
			}
			s.stashed = nil
		case !g.Has("list", "show", "--"):
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
func (s *history) undoCommits(g shell.GitCommand) {
	n := 0
	for _, a := range g.Arguments {
		later := 0 // commits after that of the hash
		for _, c := range slices.Backward(s.calls) {
			if m := committed().FindStringSubmatch(c.outcome); m != nil && text.Head(m[2], minHash) == text.Head(a, minHash) {
				n = later
			}
			if c.commits && c.committed {
				later++
			}
		}
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
		if c.outcome = resetLater + c.outcome; g.Has("--hard") {
			c.drop("reset later")
		}
	}
}

// amend notes that a commit replaced the one before it: that has the new hash, or is not told if both are for one request.
func (s *history) amend(c *toolCall) {
	line, hash := committed().FindStringSubmatch(c.outcome), ""
	for _, old := range slices.Backward(s.calls) {
		was := committed().FindStringSubmatch(old.outcome)
		if old == c || !old.commits || !old.committed || old.undone || line == nil || was == nil || hash != "" && was[2] != hash {
			continue
		}
		if hash = was[2]; old.after == c.after && old.onlyCommits {
			old.drop("amended later")
		} else {
			old.outcome = strings.Replace(old.outcome, hash, line[2], 1)
		}
	}
}

// readHashes gives a commit that was rewritten the hash of one with the same subject, on the same branch if that is known,
// where its own is not among those that a call told. Each of them has a branch, a hash and a subject.
func (s *history) readHashes(by *toolCall, told [][]string) {
	if len(told) == 0 {
		return
	}
	made := map[*toolCall][]string{}
	ours := map[string]bool{}
	for _, c := range s.calls {
		if m := committed().FindStringSubmatch(c.outcome); c != by && strings.HasPrefix(c.outcome, "[") && m != nil {
			made[c], ours[text.Head(m[2], minHash)] = m, true
		}
	}
	for c, was := range made {
		if slices.ContainsFunc(told, func(m []string) bool { return text.Head(m[2], minHash) == text.Head(was[2], minHash) }) {
			continue
		}
		for _, m := range told {
			if m[3] == was[3] && (m[1] == "" || m[1] == was[1]) && !ours[text.Head(m[2], minHash)] {
				c.outcome = strings.Replace(c.outcome, was[2], m[2], 1)
				break
			}
		}
	}
}

// minHash is the size of the shortest hash of a commit, maxListed the number of commits of a log that are read.
const (
	minHash   = 7
	maxListed = 64
)

// loggedCommit is the line of a log that has one for each commit, of a branch that it does not tell.
var loggedCommit = text.Pattern(`(?m)^(?:\* )?()([0-9a-f]{7,40}) (?:\([^)\n]*\) )?(\S.*)$`)

// resetLater begins the outcome of a commit that was taken back.
const resetLater = "reset later: "

// inScratch reports whether a command works in a folder for temporary files, where the work is not.
func (s *history) inScratch(command string) bool {
	if !strings.Contains(command, "cd ") || len(s.files) == 0 { // most commands
		return false
	}
	folder := ""
	for _, m := range folderChange().FindAllStringSubmatch(command, -1) {
		folder = shell.JoinFolder(folder, m[1])
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
		words := toolname.Words(tool)
		return slices.Contains(words, "commit") && !toolname.Looks(tool) && !slices.ContainsFunc(words, func(w string) bool { return noCommits[w] })
	}
	return shell.Commits(command)
}

// noCommits are words of tools that do something else with a commit.
var noCommits = text.Set(`comment comments message status verify revert`)
