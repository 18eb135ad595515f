package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/shell"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// readOutcome notes what the assistant says of the calls since its last message: that the one that it
// names, else the last, did not work, or that the failure of the last was to be expected.
func (s *history) readOutcome(said string) {
	c := s.unjudged
	if s.unjudged = nil; c == nil {
		return
	}
	said = text.Head(said, 200)
	t := s.currentTurn()
	since := s.calls[max(0, len(s.calls)-t.calls+t.callsBefore):]
	if !c.isNamedIn(said) {
		if i := slices.IndexFunc(since, func(o *toolCall) bool { return o.acts && o.done && o.isNamedIn(said) }); i >= 0 {
			c = since[i]
		}
	}
	switch excused := slices.ContainsFunc(since, func(o *toolCall) bool { return o.failed }); { // what failed was regretted
	case c.failed:
		c.expected = c.expected || expected().MatchString(said)
	case c.acts && len(c.arguments) > 0 && (apology().MatchString(prose.FirstSentence(said)) || declaring().MatchString(said)) && !completed(said):
		if !excused && !c.statesDone() {
			c.failed, c.undone, c.outcome = true, true, regretted
		}
	case c.acts && len(c.arguments) > 0 && !completed(said):
		if other := c.otherValue(); other.Value != "" && proposes(said, other.Value) {
			c.failed, c.undone, c.outcome = true, true, notConfirmed+strings.ReplaceAll(other.Key, "_", " ")+" "+other.Value+" was offered"
			s.offeredBy = c
		}
	case !c.acts && len(c.arguments) > 1 && toolname.Takes(c.tool) && completed(said): // to take, not to look
		c.acts = true
	}
}

var (
	// declaring says, anywhere in an answer, that an action was not possible.
	declaring = text.Pattern(`(?i)\b(?:can(?:no|'?)t|couldn'?t|could not|unable to|(?:was|were|am) not able to|wasn'?t able to|failed to|(?:is not|isn'?t|was not|wasn'?t|not) possible to) (?:\w+ )?(?:book|reserve|schedule|buy|purchase|make|complete|transfer|send|set up|add|place|process|cancel|change)\b`)
	apology   = text.Pattern(`(?i)\b(?:sorry|regret(?:fully)?|unfortunately|unable to|(?:was|were|am|is) not able to|wasn'?t able to|couldn'?t|could not|not available|unsuccessful|(?:did not|didn'?t|does not|doesn'?t) work|not possible|failed to|can(?:no|'?)t (?:set up|book|reserve|schedule|find|be))\b`)
	// completing says that a thing was done.
	completing = text.Pattern(`(?i)\b(?:(?:reservation|booking|appointment|visit|tickets?|order|payment|transfer|request|ride|cab|taxi|table|rooms?|seats?|car|hotel|flight|trip|stay)(?: (?:at|for|in|on|to|with) [^.?!]{1,40}?)? (?:has|have|is|are|was|were)(?: now| been| also)* (?:complete|completed|confirmed|booked|scheduled|reserved|made|placed)|(?:i|we)(?:'ve| have)?(?: now| just)? (?:booked|reserved|scheduled|made|bought|purchased)|you(?:'re| are) (?:all set|(?:now )?(?:scheduled|booked))|successfully|^\W*(?:was|is|has been)(?: now)? (?:booked|reserved)|on (?:its|the|their) way|(?:ride|cab|taxi|car|driver) (?:is|will be) (?:coming|there)|will arrive)\b`)
	expected   = text.Pattern(`(?i)\b(?:as expected|fails? as|expected to fail|expected failure|confirm(?:s|ed) the (?:bug|issue|failure|problem)|red phase|test fails,? (?:now|good|great))\b`)
)

// regretted is the outcome of a call that did not work by the words of the assistant.
const regretted = "did not work, said the assistant"

// isNamedIn reports whether a text has a word of the call's name, in any form: order of "the orders".
func (c *toolCall) isNamedIn(said string) bool {
	return slices.ContainsFunc(toolname.Words(c.tool), func(w string) bool {
		return len(w) > minSharedWord && strings.Contains(strings.ToLower(said), w)
	})
}

// statesDone reports whether the result of a call says by itself that the thing was done.
func (c *toolCall) statesDone() bool {
	return doneText().MatchString(c.outcome) || slices.ContainsFunc(c.result, saysDone)
}

// saysDone reports whether a value says that a thing was done.
func saysDone(f argument.Field) bool {
	return doneWord().MatchString(f.Value) || doneWord().MatchString(f.Key) && strings.EqualFold(f.Value, "true")
}

// statesAct reports whether the result of a call that is no query says what was done, or nothing but that it was.
func (c *toolCall) statesAct() bool {
	return argument.Lookup(c.arguments, "query") == "" && slices.ContainsFunc(c.result, func(f argument.Field) bool {
		return saysDone(f) && (len(c.result) == 1 && len(c.arguments) > 0 || !vagueWord().MatchString(f.Value) && (!vagueWord().MatchString(f.Key) || !strings.EqualFold(f.Value, "true")))
	})
}

var (
	// doneWord is a value, or a key with the value true, of what was done.
	doneWord = text.Pattern(`(?i)^(?:is_?)?(?:ok|success(?:ful)?|succeeded|done|completed?|sent|delivered|created|added|booked|reserved|scheduled|confirmed|paid|captured|charged|cancell?ed|refunded|submitted|accepted|updated|deleted|removed|merged|posted|published)$`)
	// vagueWord is one that a look may end with, too.
	vagueWord = text.Pattern(`(?i)^(?:is_?)?(?:ok|success(?:ful)?|succeeded|done|completed?)$`)
	doneText  = text.Pattern(`(?i)^\W*(?:ok|done|success|sent)\b|\bsuccessfully\b`)
)

// notConfirmed begins the outcome of a call of which another value was offered than was asked for.
const notConfirmed = "not confirmed: "

// readReply notes what a message of the user says of what was found, of the value that was offered, and
// of what was edited.
func (s *history) readReply(said string) {
	if s.discussed != nil && agreeing().MatchString(said) {
		s.discussed.kept = true
	}
	if !s.mention(said) && s.discussed != nil && !refining().MatchString(said) && turningDown().MatchString(said) && !leaving().MatchString(said) {
		s.discussed.chosen, s.discussed.result, s.discussed = -1, nil, nil
	}
	if c := s.offeredBy; c != nil {
		switch s.offeredBy = nil; {
		case agreeing().MatchString(said):
			c.outcome += ", the user agreed"
		case declining().MatchString(said):
			c.outcome += ", the user declined"
		}
	}
	if head := text.Head(said, maxLine); saysCommitted(head) || cleanTree().MatchString(head) {
		s.edited, s.uncommittedAs, s.discarded, s.discards = nil, "", nil, false
		if n := len(s.calls); n > 0 {
			s.calls[n-1].committed = true
		}
	}
}

// completed reports whether an answer says that a thing was done, and not as a regret.
func completed(said string) bool {
	return slices.ContainsFunc(prose.Sentences(said), func(x string) bool {
		return completing().MatchString(x) && !apology().MatchString(x) && !declaring().MatchString(x)
	})
}

// proposes reports whether an answer asks whether another value would do.
func proposes(said, value string) bool {
	return slices.ContainsFunc(prose.Sentences(said), func(x string) bool {
		return prose.IsQuestion(x) && (containsValue(x, value) || proposingOther().MatchString(x))
	})
}

var proposingOther = text.Pattern(`(?i)\b(?:how about|what about|would (?:that|it|this)|instead|try (?:for|again|it)|is (?:that|this|it) ok(?:ay)?|works? for you|alternative)\b`)

// otherValue returns the value of the result that is not the one that was asked for, of the same form; the
// zero value if all are.
func (c *toolCall) otherValue() argument.Field {
	for _, a := range c.arguments {
		for _, r := range c.result {
			if r.Key == a.Key && r.Value != a.Value && argument.Form(r.Value) == argument.Form(a.Value) {
				return r
			}
		}
	}
	return argument.Field{}
}

// blocks reports whether work can be stuck at the failure of the call: not if it only looked or
// was refused.
func (c *toolCall) blocks() bool {
	first, _, _ := strings.Cut(shell.WithoutFolder(c.description), " ")
	return !c.undone && !c.expected && !c.reads() && !toolname.Looks(c.tool) && (!c.isShell || !toolname.IsLookVerb(strings.ToLower(first)))
}
