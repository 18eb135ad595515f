package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// The program that runs an agent may edit and commit for it: aider applies the blocks of a text, and reports what it
// did in a message that belongs to no call. What it reports is read as calls with results.

var (
	reportedEdit   = text.Pattern(`^Applied edit to (\S.{0,200})$`)
	reportedCommit = text.Pattern(`^Commit ([0-9a-f]{7,40}) (\S.*)$`)
	reportedUndo   = text.Pattern(`^Removed: ([0-9a-f]{7,40})\b`)
	reportedHead   = text.Pattern(`^(?:HEAD is|Now at): +([0-9a-f]{7,40})\b`)
	// editBlock is a block of a text that replaces lines of the file above its fence.
	editBlock = text.Pattern("(?ms)^(\\S[^\n]*)\n```[^\n]*\n<{5,9} SEARCH\n(.*?)^={5,9}\n(.*?)^>{5,9} REPLACE$")
	// typedReply is what the user typed at a question of the program, shortReply such that answers only that.
	typedReply = text.Pattern(`^\(y/n[^)\n]*\)[ \t]*([^\n]*)\s*$`)
	shortReply = text.Pattern(`(?i)^\W*(?:(?:[a-z]|yes|no|nope|skip|all|always|never|don'?t ask(?: again)?)\b\W*)*$`)
)

// maxReported is the number of edits and commits that are read from a report.
const maxReported = 64

// promptReply returns what the user typed at the question that the program asked in the message before, "" if it says
// nothing more, and reports whether a message of the assistant is such a reply.
func (s *history) promptReply(content string) (reply string, ok bool) {
	asked := s.text.asked
	if s.text.asked = false; !asked || len(content) > maxRequest {
		return "", false
	}
	m := typedReply().FindStringSubmatch(content)
	if m == nil {
		return "", false
	}
	if reply = strings.TrimSpace(m[1]); shortReply().MatchString(reply) || agreeingOnly().MatchString(reply) {
		return "", true
	}
	return reply, true
}

// readClientReport adds what the beginning of a message without the id of a call reports of edits and commits, unless the
// agent calls tools.
func (s *history) readClientReport(id, head, tail string) {
	if s.text.asked = false; id != "" || s.text.called {
		return
	}
	s.text.asked = strings.Contains(prose.LastLine(text.Tail(tail, maxLine)), "?")
	var blocks [][]string
	read := map[string]bool{}
	for _, l := range prose.SplitLines(text.Head(head, maxReply)) {
		if read[l] || len(read) == maxReported {
			continue
		}
		if m := reportedEdit().FindStringSubmatch(l); m != nil {
			if blocks == nil {
				blocks = editBlock().FindAllStringSubmatch(s.currentTurn().lastText, -1)
			}
			name := m[1]
			if !strings.Contains(name, "/") {
				name = "./" + name
			}
			fs := []argument.Field{{Key: "path", Value: name}}
			for _, b := range blocks {
				if b[1] == m[1] {
					fs = append(fs, argument.Field{Key: "old_string", Value: b[2], Object: len(fs)}, argument.Field{Key: "new_string", Value: b[3], Object: len(fs)})
				}
			}
			s.addReported("edit", "", l, fs)
		} else if m := reportedCommit().FindStringSubmatch(l); m != nil {
			s.addReported("commit", m[2], m[1], nil)
		} else if m := reportedUndo().FindStringSubmatch(l); m != nil {
			s.undoReported(m[1])
		} else if m := reportedHead().FindStringSubmatch(l); m != nil {
			s.undoBehind(m[1])
		} else {
			continue
		}
		read[l] = true
	}
}

// addReported adds a call of the program with its result.
func (s *history) addReported(tool, said, result string, fs []argument.Field) {
	s.addCall(textID, tool, said, fs)
	s.addResult(s.takeOpen(textID), result, result)
	s.unjudged = nil // it was the program that made it
}

// undoBehind takes the commits back that were made after one, which is the newest now: the user may have reset others.
func (s *history) undoBehind(hash string) {
	made := func(c *toolCall) bool { return c.commits && c.committed }
	if at := slices.IndexFunc(s.calls, func(c *toolCall) bool { return made(c) && c.outcome == hash }); at >= 0 {
		for _, c := range s.calls[at+1:] {
			if made(c) {
				s.undoReported(c.outcome)
			}
		}
	}
}

// undoReported takes a commit back, with its edits and what was said before it.
func (s *history) undoReported(hash string) {
	at := slices.IndexFunc(s.calls, func(c *toolCall) bool { return c.commits && c.outcome == hash })
	if at < 0 { // an earlier summary may tell of it
		s.previous[sectionCompleted] = slices.DeleteFunc(s.previous[sectionCompleted], func(e entry) bool { return strings.HasSuffix(e.text, " → "+hash) })
		return
	}
	first := at
	for first > 0 && s.calls[first-1].change != nil && !s.calls[first-1].committed && s.calls[first-1].after == s.calls[at].after {
		first--
	}
	for _, c := range s.calls[first : at+1] {
		s.discountFiles(c)
		c.failed, c.undone, c.acts, c.committed, c.outcome = true, true, false, false, "undone later"
	}
	for _, t := range s.turns {
		if t.after == s.calls[at].after && !t.request.empty() {
			s.dropSaid(t)
			t.lines, t.callsBefore = []string{undone}, t.calls // nothing followed it
		}
	}
}
