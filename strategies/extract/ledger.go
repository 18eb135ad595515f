package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	maxOptions  = 40 // of a listing
	maxListings = 3
)

// record adds a call. If there are too many, the oldest that only looked goes.
func (s *history) record(c *toolCall) {
	if len(s.calls) >= maxCalls {
		i := max(0, slices.IndexFunc(s.calls[:maxCalls/2], func(c *toolCall) bool { return !c.acts }))
		if s.calls[i].acts && s.calls[i].done {
			s.dropped++
		}
		s.calls = slices.Delete(s.calls, i, i+1)
	}
	s.calls = append(s.calls, c)
}

// ran returns what a call ran, by its command or by its name and what it is told by.
func (c *toolCall) ran() []shell.Attempt {
	if c.isShell {
		return shell.AttemptsOf(c.tool, c.description)
	}
	return []shell.Attempt{shell.NewAttempt(c.tool, strings.Fields(c.description))}
}

// maxKind is the number of characters of a kind of calls.
const maxKind = 40

// kind returns the name of the tool of a call, or the program that it ran last with its subcommand.
func (c *toolCall) kind() string {
	if !c.isShell {
		return text.Head(toolname.Short(c.tool), maxKind)
	}
	ran := c.ran()
	return text.Head(strings.TrimPrefix(ran[len(ran)-1].What, c.tool+" "), maxKind)
}

// worthDone returns the value of an action: less for one of which the effect is seen in a listing of its folder.
func (c *toolCall) worthDone() float64 {
	if c.isShell && !slices.ContainsFunc(shell.Commands(c.description), func(x shell.Command) bool {
		first, _, _ := strings.Cut(shell.WithoutFolder(x.Text), " ")
		return first != "cd" && !slightActs[first]
	}) {
		return worthActed / 4
	}
	return worthActed
}

// slightActs are programs with such effects only.
var slightActs = text.Set(`mkdir touch chmod cp`)

// formats reports whether a call committed nothing but what a program formatted.
func (c *toolCall) formats() bool {
	return c.commits && formatting().MatchString(c.description+" "+c.outcome)
}

var formatting = text.Pattern(`(?:^|["'] ?|\] |: )style(?:\([^)]*\))?: `)

// ranAgain reports whether what a call ran says more than an earlier run of it: not if it was refused, or found
// nothing to check.
func (c *toolCall) ranAgain() bool { return c.done && !c.undone && c.outcome != noTests }

// wasRepeated reports whether an entry of an earlier summary tells of a failure of what was run again since.
func (s *history) wasRepeated(e entry) bool {
	line, _, _ := strings.Cut(strings.TrimPrefix(e.text, bulletMark), " → ")
	tool, command, _ := strings.Cut(strings.TrimSuffix(line, " (failed)"), ": ")
	return shell.IsRepeated(shell.AttemptsOf(tool, command), func(a shell.Attempt) bool {
		return slices.ContainsFunc(s.calls, func(c *toolCall) bool {
			return c.ranAgain() && slices.ContainsFunc(c.ran(), func(again shell.Attempt) bool {
				return again.What == a.What && shell.Repeats(again.Targets, a.Targets)
			})
		})
	})
}

// searchedAgain reports whether the next call searches in the same way on the same day for another request, and an option of
// that was talked about: what was found before was not wanted. Searches that found nothing do not count. The only thing
// that was found by other arguments answers another question.
func (s *history) searchedAgain(i int) bool {
	c, j := s.calls[i], i+1
	for j+1 < len(s.calls) && s.calls[j].tool == c.tool && s.calls[j].day == c.day && s.calls[j].chosen < 0 && len(s.calls[j].result) == 0 {
		j++
	}
	if j >= len(s.calls) {
		return false
	}
	next := s.calls[j]
	if c.single && !slices.ContainsFunc(next.arguments, func(f argument.Field) bool { return slices.ContainsFunc(c.arguments, f.Equals) }) {
		return false
	}
	return !c.kept && c.day != "" && next.tool == c.tool && next.day == c.day && next.after > c.after && next.chosen >= 0 && !next.acts
}
