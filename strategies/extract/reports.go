package extract

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// The program that runs an agent may edit and commit for it: aider applies the blocks of a text, and reports what it
// did in a message that belongs to no call. What it reports is read as calls with results.

var (
	reportedEdit   = text.Pattern(`^Applied edit to (\S.{0,200})$`)
	reportedCommit = text.Pattern(`^Commit ([0-9a-f]{7,40}) (\S.*)$`)
	reportedUndo   = text.Pattern(`^Removed: ([0-9a-f]{7,40})\b`)
	// editBlock is a block of a text that replaces lines of the file above its fence.
	editBlock = text.Pattern("(?ms)^(\\S[^\n]*)\n```[^\n]*\n<{5,9} SEARCH\n(.*?)^={5,9}\n(.*?)^>{5,9} REPLACE$")
	// promptReply is what the user typed at a question of the program.
	promptReply = text.Pattern(`^\(y/n[^)\n]*\)[ \t]*([^\n]*)\s*$`)
)

// readClientReport adds what a message without a call reports of edits and commits.
func (s *history) readClientReport(report string) {
	for _, l := range splitLines(text.Head(report, maxReply)) {
		if m := reportedEdit().FindStringSubmatch(l); m != nil {
			fs := []argument{{key: "path", value: m[1]}}
			for _, b := range editBlock().FindAllStringSubmatch(s.currentTurn().lastText, -1) {
				if b[1] == m[1] {
					fs = append(fs, argument{key: "old_string", value: b[2], object: len(fs)}, argument{key: "new_string", value: b[3], object: len(fs)})
				}
			}
			s.addReported("edit", "", l, fs)
		} else if m := reportedCommit().FindStringSubmatch(l); m != nil {
			s.addReported("commit", m[2], m[1], nil)
		} else if m := reportedUndo().FindStringSubmatch(l); m != nil {
			s.undoReported(m[1])
		}
	}
}

// addReported adds a call of the program with its result.
func (s *history) addReported(tool, said, result string, fs []argument) {
	s.addCall(textID, tool, said, fs)
	s.addResult(s.takeOpen(textID), result, result)
	s.unjudged = nil // it was the program that made it
}

// undoReported takes a commit back, with its edits and what was said before it.
func (s *history) undoReported(hash string) {
	at := slices.IndexFunc(s.calls, func(c *toolCall) bool { return c.commits && c.outcome == hash })
	if at < 0 {
		return
	}
	first := at
	for first > 0 && s.calls[first-1].change != nil && !s.calls[first-1].committed {
		first--
	}
	for _, c := range s.calls[first : at+1] {
		s.discountFiles(c)
		c.failed, c.undone, c.acts, c.committed, c.outcome = true, true, false, false, "undone later"
	}
	for _, t := range s.turns {
		if t.after == s.calls[at].after && !t.request.empty() {
			s.dropSaid(t)
		}
	}
}
