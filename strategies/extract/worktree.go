package extract

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// discardEdits takes back the edits without a commit that commands of git discarded, or that a working tree without
// changes shows to be gone.
func (s *history) discardEdits(c *toolCall, output string) {
	if !strings.Contains(c.command, "git ") { // most commands
		return
	}
	since := len(s.calls) // the newest commit
	for since > 0 && !s.calls[since-1].committed {
		since--
	}
	edits, folder := s.calls[since:], ""
	clean := cleanTree().MatchString(text.Tail(output, maxLine))
	for _, x := range shellCommands(c.command) {
		if to, ok := strings.CutPrefix(x.text, "cd "); ok && to != s.folder {
			folder = strings.Trim(to, "./")
		}
		m := gitCommand().FindStringSubmatch(x.text)
		if m == nil {
			continue
		}
		var files []string
		has := map[string]bool{}
		for w := range strings.FieldsSeq(m[2]) {
			if has[w] = true; !strings.HasPrefix(w, "-") && w != "HEAD" {
				files = append(files, path.Join(folder, w))
			}
		}
		switch {
		case m[1] == "reset" && has["--hard"]:
			s.takeBack(edits, []string{"."})
		case m[1] == "checkout" && (has["--"] || has["."]), m[1] == "restore" && (!has["--staged"] || has["--worktree"]):
			s.takeBack(edits, files)
		case m[1] == "stash" && (has["drop"] || has["clear"]):
			for i, o := range slices.Backward(edits) {
				if o != c && o.isShell && stashing().MatchString(o.description) {
					s.takeBack(edits[:i], []string{"."})
					break
				}
			}
		case m[1] == "status" && len(files) == 0 && (has["-s"] || has["--short"] || has["--porcelain"]):
			clean = clean || strings.TrimSpace(output) == ""
		}
	}
	if clean && !c.commits && slices.ContainsFunc(edits, (*toolCall).discards) {
		s.takeBack(edits, []string{"."})
		s.finished = nil // what was done is gone
	}
	c.committed = c.committed || clean
}

// saysCommitted reports whether the user says that what was edited was committed.
func saysCommitted(said string) bool {
	return slices.ContainsFunc(sentences(said), func(x string) bool {
		return userCommitted().MatchString(x) && !isQuestion(x) && !unlikely().MatchString(x)
	})
}

var (
	userCommitted = text.Pattern(`(?i)\bi(?:'ve| have)? (?:just |already |now )*(?:committed|pushed|merged|did an? [\w/ ]*(?:commit|push))\b`)
	unlikely      = text.Pattern(`(?i)\b(?:if|before|until|unless|nothing|not|when|once)\b`)
)

// takeBack takes edits of some files, or of all below a folder, out of the calls that made them.
func (s *history) takeBack(calls []*toolCall, files []string) {
	within := func(p string) bool {
		return slices.ContainsFunc(files, func(f string) bool {
			return f == "." || strings.HasSuffix("/"+p, "/"+f) || strings.Contains("/"+p, "/"+f+"/")
		})
	}
	s.edited = slices.DeleteFunc(s.edited, within)
	name := s.fileNames()
	for _, c := range calls {
		if !c.edited() {
			continue
		}
		kept := c.paths[:0:0]
		for _, p := range c.paths {
			if !within(p) {
				kept = append(kept, p)
				continue
			}
			if !strings.Contains(p, plansFolder) { // it is in no repository
				s.discarded = appendNew(s.discarded, name(p))
			}
			if f := s.files[p]; f != nil {
				if f.changes, f.declares = f.changes-1, nil; f.changes+f.reads <= 0 || f.created {
					delete(s.files, p)
				}
			}
		}
		if c.paths = kept; len(kept) == 0 && !c.runsToo {
			c.drop()
		}
		if c.change != nil {
			c.change.files = slices.DeleteFunc(c.change.files, func(e *edit) bool { return within(e.path) })
		}
	}
}

// discards reports whether a call may have taken edits out of the working tree.
func (c *toolCall) discards() bool {
	return c.isShell && c.done && (discarding().MatchString(c.description) || c.failed && strings.Contains(c.description, "git stash"))
}

// inScratch reports whether a command works in a folder for temporary files, where the work is not.
func (s *history) inScratch(command string) bool {
	folder := scratchFolder().FindStringSubmatch(command)
	return folder != nil && len(s.files) > 0 && !strings.HasPrefix(s.folder, folder[1])
}

// gitCommand is a command of git with its arguments, stashing one that puts edits aside, discarding one after which they
// may be gone.
var (
	gitCommand    = text.Pattern(`^git (?:-[cC] \S+ )*([a-z-]+)\b(.*)$`)
	stashing      = text.Pattern(`\bgit stash(?: (?:push|save)\b| -| *(?:$|[;&|]))`)
	cleanTree     = text.Pattern(`(?i)\bnothing to commit\b|\bworking (?:tree|directory) clean\b`)
	scratchFolder = text.Pattern(`\bcd "?((?:/private)?/tmp\b|/var/folders/|/dev/shm\b|\$\(mktemp |\$\{?TE?MP)`)
	discarding    = text.Pattern(`\bgit (?:-[cC] \S+ )*(?:checkout (?:\S+ )*(?:--|\.)(?: |$)|restore |reset (?:\S+ )*--hard|stash (?:drop|clear))`)
)

// undoCommits takes the newest commits back that a command resets the branch to before.
func (s *history) undoCommits(command string) {
	m := resetting().FindStringSubmatch(command)
	if m == nil {
		return
	}
	n := max(1, len(m[1]))
	if m[2] != "" {
		n, _ = strconv.Atoi(m[2])
	}
	for _, c := range slices.Backward(s.calls) {
		if n > 0 && c.commits && c.committed {
			c.committed, c.outcome = false, resetLater+c.outcome
			if n--; strings.Contains(m[0], "--hard") {
				c.drop()
			}
		}
	}
}

// resetting is a reset of a branch to before its newest commits: HEAD^^, HEAD~2.
var resetting = text.Pattern(`\bgit reset (?:--\w+ )*HEAD(?:(\^+)|~(\d*))`)

// resetLater begins the outcome of a commit that was taken back.
const resetLater = "reset later: "
