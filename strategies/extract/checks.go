package extract

import (
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// unresolved reports of each call whether it failed and was the last of its family, no check of the same kind passed on
// all there is, after an edit and before a commit, and of a merge, no commit followed.
func (s *history) unresolved() []bool {
	later := map[string][][]string{} // the targets of later calls by what they run
	used := map[string]bool{}        // files of later calls
	committed := false               // later
	passed := map[string]bool{}      // by the kind of check; true if edits came before it
	out := make([]bool, len(s.calls))
	again := func(a shell.Attempt) bool {
		return slices.ContainsFunc(later[a.What], func(again []string) bool { return shell.Repeats(again, a.Targets) })
	}
	for i, c := range slices.Backward(s.calls) {
		var kinds []string
		if c.isShell && (c.failed || c.passed()) {
			kinds = c.checkKinds()
		}
		settled := len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return !passed[k] })
		settled = settled || committed && c.conflicts()
		out[i] = c.failed && !settled && !shell.IsRepeated(c.ran(), again) &&
			!(c.changes && !c.runsToo && slices.ContainsFunc(c.paths, func(p string) bool { return used[p] }))
		if c.done && !c.failed {
			for _, p := range c.paths {
				used[p] = true
			}
		}
		if c.ranAgain() {
			for _, a := range c.ran() {
				later[a.What] = append(later[a.What], a.Targets)
			}
		}
		committed = committed || c.committed
		if c.edited() {
			for k := range passed {
				passed[k] = true
			}
		} else if committed && c.passed() && slices.ContainsFunc(c.ran(), func(a shell.Attempt) bool { return a.Checks && shell.IsAll(a.Targets) }) {
			for _, k := range kinds {
				if _, known := passed[k]; !known {
					passed[k] = false
				}
			}
		}
	}
	return out
}

// conflicts reports whether a call merged with conflicts, which a commit concludes.
func (c *toolCall) conflicts() bool {
	return merging().MatchString(c.description) && conflicting().MatchString(c.outcome)
}

var (
	merging     = text.Pattern(`\bgit (?:merge|pull|rebase|cherry-pick|revert|stash)\b`)
	conflicting = text.Pattern(`(?i)\bautomatic merge failed\b|\bmerge conflict\b|\bfix conflicts\b`)
)

// checkKinds returns what a call checks, in which folder: by any program that runs tests or a linter, else by which.
func (c *toolCall) checkKinds() []string {
	folder := shell.Folder(c.description)
	var kinds []string
	for _, a := range c.ran() {
		if !a.Checks {
			continue
		}
		kind := a.What
		switch word := shell.CheckWord(kind); {
		case strings.Contains(word, "test"), word == "jest":
			kind = "test"
		case strings.Contains(word, "lint"), word == "ruff", word == "clippy":
			kind = "lint"
		}
		kinds = append(kinds, folder+" "+kind)
	}
	return kinds
}

// outdatedChecks reports of each call whether it is a check that passed and was repeated by a later one that did, or that
// edits followed and, after the last of them, a check of the same kind that passed.
func (s *history) outdatedChecks() []bool {
	later := map[string][][]string{} // the targets of later checks by what they run
	edited, fresh := false, map[string]bool{}
	out := make([]bool, len(s.calls))
	for i, c := range slices.Backward(s.calls) {
		edited = edited || c.edited()
		if !c.passed() {
			continue
		}
		ran := c.ran()
		if slices.ContainsFunc(ran, func(a shell.Attempt) bool { return !a.Checks }) { // it did more
			continue
		}
		kinds := c.checkKinds()
		again := edited && !slices.ContainsFunc(kinds, func(k string) bool { return !fresh[k] })
		out[i] = !c.acts && (again || shell.IsRepeated(ran, func(a shell.Attempt) bool {
			return slices.ContainsFunc(later[a.What], func(again []string) bool {
				return shell.IsAll(again) || !shell.IsAll(a.Targets) && shell.Repeats(again, a.Targets)
			})
		}))
		for _, k := range kinds {
			fresh[k] = fresh[k] || !edited
		}
		for _, a := range ran {
			later[a.What] = append(later[a.What], a.Targets)
		}
	}
	return out
}

// maxChecked is the number of checks that the state tells.
const maxChecked = 3

// addChecked tells which checks passed after the newest edit, or that there were none if one is due.
func (s *history) addChecked(b *itemList, due bool) {
	changed := len(s.calls) - 1
	for changed >= 0 && s.calls[changed] != s.discardedBy && !s.calls[changed].editedWork() {
		changed--
	}
	if changed < 0 {
		return
	}
	last := s.lastCall()
	failed, told := map[string]bool{}, map[string]bool{} // kinds, later
	var passed []string
	ran := s.calls[changed].runsToo
	for i, c := range slices.Backward(s.calls) {
		if i <= changed {
			break
		}
		if c.isShell && !c.failed && merging().MatchString(c.description) { // what came in was not checked
			ran = true
			break
		}
		ran = ran || c.acts || c.isShell && !c.reads() && (shell.IsCheck(c.description) || !onlyFormats().MatchString(shell.WithoutFolder(c.description))) ||
			!c.isShell && !c.administers && (len(c.paths) == 0 && !toolname.Looks(c.tool) || slices.ContainsFunc(toolname.Words(c.tool), func(w string) bool { return checkWords[w] }))
		switch kinds := c.checkKinds(); {
		case !c.isShell:
		case c.failed:
			for _, k := range kinds {
				failed[k] = true
			}
		case c.passed() && !c.acts && c != last && !b.outdated[i] && len(kinds) > 0 && len(passed) < maxChecked && !inBackground().MatchString(c.outcome) &&
			!slices.ContainsFunc(kinds, func(k string) bool { return failed[k] }):
			if b.told[c] = true; !slices.ContainsFunc(kinds, func(k string) bool { return !told[k] }) { // a later one passed that checks more
				continue
			}
			for _, k := range kinds {
				told[k] = true
			}
			passed = append(passed, strings.TrimSuffix(strings.TrimPrefix(c.line(minExcerpt), bulletMark+c.tool+": "), "\n"))
		}
	}
	slices.Reverse(passed)
	switch {
	case len(passed) > 0:
		it := b.add(sectionState, checkedMark+strings.Join(passed, "; ")+"\n", worthStateLine)
		if it.tier = tierState; !due { // the commit says more
			it.tier = tierFiles
		}
	case due && !ran && (s.text.called || s.text.returned || slices.ContainsFunc(s.calls[:changed], (*toolCall).passed)):
		b.add(sectionState, notChecked+"\n", worthStateLine).tier = tierOpen
	}
}

// inBackground is in the result of a command, or of a subagent, that has not ended.
var inBackground = text.Pattern(`(?i)\b(?:running|started|moved)\b.{0,20}\bbackground\b|\bagent (?:was )?launched\b|^process running with session ID\b`)

// onlyFormats is a command that formats files.
var onlyFormats = text.Pattern(`^(?:\S+ ){0,3}(?:(?:go)?fmt|format|prettier|black|isort)\b[^;&|]*$`)

// checkWords are in the names of tools that check.
var checkWords = text.Set(`test tests check checks lint diagnostics build`)

// editedWork reports whether a call changed files that a check may read: no plans and notes.
func (c *toolCall) editedWork() bool {
	return c.edited() && slices.ContainsFunc(c.paths, func(p string) bool { return path.Ext(p) != ".md" })
}

// probes reports whether a call that failed only tried something, or was mistyped.
func (c *toolCall) probes() bool {
	return c.isShell && !c.acts && !c.changes && (shell.RunsInline(c.description) || mistyped().MatchString(c.outcome))
}

// mistyped is what a program says of a command that it does not know.
var mistyped = text.Pattern(`(?i)\b(?:unknown|unrecognized|invalid) (?:shorthand |long )?(?:flag|option|command|subcommand)\b|\bno such option\b|\bcommand not found\b`)

// checkedSince reports whether files were edited after a call, and a check passed since.
func (s *history) checkedSince(i int) bool {
	return s.editedSince(i) && slices.ContainsFunc(s.calls[i+1:], (*toolCall).passed)
}

// checks reports whether a call is a check that has a result.
func (c *toolCall) checks() bool {
	return c.isShell && c.done && !c.undone && !c.reads() && shell.IsCheck(c.description)
}

// passed reports whether a call is a check that did not fail.
func (c *toolCall) passed() bool {
	return c.checks() && !c.failed && !c.commits && c.outcome != noTests
}
