package extract

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// actionsHeading is that of the log of actions behind a summary by a model.
	actionsHeading = "## Action log\n"
	// actionsShare is the maximum share of the log in what is appended to a summary.
	actionsShare = 0.4
	// maxAction is the size of an entry in characters.
	maxAction = 240
	// actionsLeftOut begins the line that counts the entries without room.
	actionsLeftOut = bulletMark + "Left out: "
)

// Appendix returns what is appended to a summary by a model, in at most budget tokens, or ""
// if nothing fits: a log of the calls that changed something or that failed and were not made
// good, with their times, and the block of references. A token is four characters.
func (d *Digest) Appendix(budget int) string {
	log := d.fit(int(actionsShare*float64(budget)), d.history.actionLog)
	if log != "" {
		log += "\n\n"
		budget -= (utf8.RuneCountInString(log) + 3) / 4
	}
	return strings.TrimSpace(log + d.references(budget, log))
}

// action is an entry of the log. An edit of a file has less value than what cannot be seen in
// the files.
type action struct {
	text  string
	times int // it was made in a row
	edit  bool
}

func (a action) String() string {
	if a.times > 1 {
		return fmt.Sprintf("%s (%d times)\n", a.text, a.times)
	}
	return a.text + "\n"
}

// actionLog returns the log in at most limit characters: the newest entries, edits of files
// after all others, in the order of time.
func (s *history) actionLog(limit int) string {
	all := s.actions()
	limit -= len(actionsHeading) + len(actionsLeftOut) + len("10000 entries\n")
	chosen := make([]bool, len(all))
	left := len(all)
	for _, edit := range []bool{false, true} {
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].edit != edit {
				continue
			}
			if limit -= utf8.RuneCountInString(all[i].String()); limit < 0 {
				break
			}
			chosen[i] = true
			left--
		}
	}
	if left == len(all) {
		return ""
	}
	var b strings.Builder
	b.WriteString(actionsHeading)
	if left > 0 {
		fmt.Fprintf(&b, actionsLeftOut+"%d entries\n", left)
	}
	for i, a := range all {
		if chosen[i] {
			b.WriteString(a.String())
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// actions returns the entries of the log: those of an earlier summary and the calls since.
func (s *history) actions() []action {
	var out []action
	for _, e := range s.previous[sectionCompleted] {
		a := action{text: e.text, times: 1}
		if e.day != "" {
			a.text = bulletMark + e.day + " " + strings.TrimPrefix(e.text, bulletMark)
		}
		out = append(out, a)
	}
	s.markNewest()
	unresolved := s.unresolved()
	for i, c := range s.calls {
		if c.administers || !c.acts && !c.changes && (c.chosen < 0 || c.single) && !unresolved[i] {
			continue
		}
		a := action{text: strings.TrimSuffix(c.line(maxAction), "\n"), times: 1, edit: c.changes && !c.runsToo && !unresolved[i]}
		if !c.at.IsZero() && s.lastAt.Sub(s.firstAt) > time.Minute {
			a.text = bulletMark + c.at.Format("2006-01-02 15:04") + " " + strings.TrimPrefix(a.text, bulletMark)
		}
		if n := len(out); n > 0 && out[n-1].text == a.text {
			out[n-1].times++
			continue
		}
		out = append(out, a)
	}
	return out
}
