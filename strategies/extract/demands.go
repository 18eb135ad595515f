package extract

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

var (
	// commandName is that of the command of an agent before what the user says to it.
	commandName = text.Pattern(`^/[a-z][\w:-]* +`)
	// announcing ends the line before what the user passes on.
	announcing = text.Pattern(`(?i)\b(?:e?-?mail|letter|transcript|thread|ticket|article|wrote|writes|said|(?:message|comment|review|post|notes?|issue|logs?|output) (?:from|of|by))\b[^.?!]*:\s*$`)
	// wishing is in what the user wants for the time being.
	wishing = text.Pattern(`(?i)\b(?:prefer|should|only|must|want|need|don'?t (?:use|add|change|make|do|let)|do not|keep|avoid|ensure|make sure)\b`)
	// programLine is a line of a program's output, of a difference, or of source. A list of the
	// user has a blank behind its mark, and one only.
	programLine = text.Pattern(`^\W*(?:\d{4}-\d\d-\d\d|\d\d?:\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d)|\|(?:DEBU|DEBUG|INFO|WARN|ERROR)\||(?:\b[\w.]+=\S+ .*){3}|^\W*(?:at |File "|goroutine )|[{};]\s*$|` +
		`^\s*[\[{(]["'{\[].*[\]})][,;]?\s*$|^\s*(?:[-+](?:\S|\s\s)|[|│❯⏺⎿├└$%#]|\d+:|["'][^"']*["']?,?\s*$)|` +
		`^\s*\d+ *[│|]|^\s*(?:@[\w.]+(?:\(.*)?|//.*|/\*.*)$|` + // line numbers, decorators, comments
		`^\s*(?:(?:await|return|raise|throw|new|if|elif|not) +)*[A-Za-z_][\w.]*\(.*\)? *(?:[,:]|as \w+:)?\s*$|` + // calls
		`^\s*(?:(?:const|let|var|final|self) +)?[A-Za-z_][\w.\[\]"']*(?: *: *[\w.\[\], ]+)? *(?:[-+*/|&?:]|\|\||\?\?)?= *\S|` + // assignments
		`^\s*(?:async +)?(?:def|func|fn|function|class|interface|struct|enum|impl) +[\w.]+ *[(:<{]|^\s*(?:from +\S+ +)?import +[\w.*{"']+[^ ]*$`)
)

// isProgramLine reports whether a line is one of a program. Of a long line it looks at the beginning and the last sign.
func isProgramLine(l string) bool {
	if len(l) <= maxLine {
		return programLine().MatchString(l)
	}
	l = strings.TrimRight(l, " \t\r\n")
	return strings.ContainsAny(l[len(l)-1:], "{};") || programLine().MatchString(text.Head(l, maxLine))
}

// minStanding is the size, in bytes, below which a demand only answers what was said before.
const minStanding = 24

// rejecting is in a reply to what was not wanted.
var rejecting = text.Pattern(`(?i)^\W*(?:no|nope|nah|don'?t|do not|stop|wrong|not quite|undo|revert)\b|\bi (?:undid|reverted|reset|rolled back)\b|\b(?:undo|revert|roll back) (?:that|it|this|your|the|all)\b|\bput (?:that|it|them|\S+) back\b`)

// refuting is in a reply to what is not so, or was taken back.
var refuting = text.Pattern(`(?i)^\W*(?:(?:no|nope|nah|hmm*|well|sorry|but)\b[,. ]*)*(?:(?:that|this|it)(?:'?s| is)|you(?:'re| are)) (?:not (?:it|right|true|correct|so|the (?:problem|issue|cause|reason|bug|case))|wrong|incorrect|false)\b|^\W*(?:no|nope)\b[,. ]*(?:it|that|this) (?:isn'?t|is not|doesn'?t|does not|didn'?t|wasn'?t)\b|^/undo\b|^\W*still (?:the same|broken|failing|not|no)\b|` +
	`^\W*(?:(?:no|well|hmm*|but|eh+|ok(?:ay)?|sorry|i(?:['’](?:m|ve)| am| have)?|it(?:['’]s| is)?|this(?: is)?|that(?:['’]s| is)?)\b\W*)*still (?:the same|broken|fail\w*|happen\w*|does(?:n['’]t| not) (?:work|help)|(?:get(?:ting)?|got|see(?:ing)?|hav(?:e|ing)) (?:\w+ ){0,3}(?:errors?|failures?|warnings?|same|problem|issue)\b)|^\W*(?:it|that|this) (?:did|does)(?:n['’]t| not) (?:work|help|fix it)(?:\W*$|[.,;!]|\W+(?:and|but|so|either|yet|for me)\b)|` +
	`\bi (?:undid|reverted)\b`)

// conceding begins an answer by which the one before was wrong.
var conceding = text.Pattern(`(?i)^\W*(?:(?:ugh|ah|oh|hmm*|wait|no|yes|ok(?:ay)?)\b\W*)*(?:you(?:['’]re| are)(?: \w+ly)? (?:right|correct)\b|(?:good|great) catch\b|i was wrong\b|i(?:['’]m| am) not (?:sure|certain)\b|i assumed\b|my (?:mistake|bad)\b|i (?:misread|misunderst))`)

// contradicting begins an answer that says otherwise than the one before, if it is about the same.
var contradicting = text.Pattern(`^\W*(?:(?i:ugh|ah|oh|hmm*|no|yes|ok(?:ay)?)\b\W*)*(?:(?i:actually|wait)[,—–:]|[^.!?]{0,60} (?:DID|DOES|WAS|IS|ARE|HAS) [a-z])`)

// contradicts reports whether an answer contradicts what was said in a turn.
func (t *turn) contradicts(answer string) bool {
	if first := prose.FirstSentence(text.Head(answer, maxLine)); contradicting().MatchString(first) {
		for w := range prose.Words(first) {
			if len(w) >= minRepeated && !identifier.IsStopWord(strings.ToLower(w)) && slices.ContainsFunc(t.lines, func(l string) bool { return prose.ContainsWord(l, w) }) {
				return true
			}
		}
	}
	return conceding().MatchString(text.Head(answer, maxLine))
}

// minRepeated is the size, in bytes, from which a word tells that two answers are about the same.
const minRepeated = 4

// reject drops what was decided and said in the last turn, and its edits if the user took them back.
func (s *history) reject(said string) {
	s.decisions = s.decisions[:len(s.decisions)-s.proposed]
	last := s.currentTurn()
	if slices.ContainsFunc(prose.Sentences(said), func(x string) bool { return undid().MatchString(x) && !prose.IsQuestion(x) }) {
		made := s.calls[max(0, len(s.calls)-last.calls):]
		s.takeBack(nil, made, editedPaths(made))
	}
	if last.lines, last.lastStart = nil, 0; isUndoing(said) {
		last.lines, last.callsBefore = []string{undone}, last.calls // nothing followed it
	}
}

// bringBack drops what was decided and demanded against what the user wants back.
func (s *history) bringBack(said string) {
	for _, m := range restoring().FindAllStringSubmatch(said, -1) {
		name := strings.Trim(cmp.Or(m[1], m[2]), "\x60'\"()")
		if !coined().MatchString(name) {
			continue
		}
		against := func(x string) bool { return dispensing().MatchString(x) && prose.ContainsWord(x, name) }
		s.decisions = slices.DeleteFunc(s.decisions, against)
		s.proposed = min(s.proposed, len(s.decisions))
		for _, t := range s.turns {
			t.demands = slices.DeleteFunc(t.demands, func(d demand) bool { return against(d.text) })
		}
	}
}

var (
	restoring  = text.Pattern(`(?i)\b(?:put|bring|get) (?:the |that |our |my )?([\w.\x60()]*\w[\x60()]*) back\b|\b(?:restore|bring back|put back|re-add) (?:the |that |our |my )?([\w.\x60()]*\w)`)
	dispensing = text.Pattern(`(?i)\b(?:no longer|no more|not (?:be )?needed|unneeded|unnecessary|obsolete|redundant|without|remov\w+|delet\w+|dropp?\w*)\b`)
)

// undid tells that the user took the last changes back.
var undid = text.Pattern(`(?i)\bi (?:just |already |have )*(?:undid|reverted|rolled back) (?:it|that|this|everything|all of (?:it|that)|(?:all |all of )?(?:your|the|those|these|all)(?: last)? (?:changes?|edits?))(?: again)? *(?:[.,;!-]|$|(?:and|so|now)\b)`)

// undoing is a request to take back what was made for the one before, and nothing else; undone is told of that.
var undoing = text.Pattern(`(?i)^\W*(?:(?:no|nah|ok(?:ay)?|please|pls|just|actually|can you|could you|now)\b\W*)*(?:/?undo|revert|roll back)\b(?: (?:that|it|this|everything|all(?: of (?:it|that))?|(?:your|the|those|these)(?: last)? (?:changes?|edits?)))?(?: please)?\W*$`)

// isUndoing reports whether a message takes back what was made for the one before, and says at most what is wanted instead.
func isUndoing(s string) bool {
	first := prose.FirstSentence(strings.TrimLeft(denying().ReplaceAllString(s, ""), " "))
	rest := strings.TrimSpace(s[strings.LastIndex(s, first)+len(first):])
	return undoing().MatchString(first) && (!prose.IsQuestion(first) || requested().MatchString(first) || rest == "") && !rejecting().MatchString(rest) && !keeping().MatchString(rest)
}

var (
	denying   = text.Pattern(`(?i)^\W*(?:no|nope|nah)\b[.!] *`)
	requested = text.Pattern(`(?i)\b(?:can|could|would|please|pls)\b`)
	keeping   = text.Pattern(`(?i)\b(?:keep (?:it|that|them|this)|leave (?:it|that|them|this)|i mean)\b`)
)

const undone = "Taken back."

func (t *turn) isUndone() bool {
	return len(t.lines) == 1 && (t.lines[0] == undone || t.lines[0] == interrupted)
}

// maxDemands is the maximum number of demands of a turn.
const maxDemands = 12

// demand is what the user asked for at one time, or what a text says that the user pasted.
type demand struct {
	text   string
	pasted bool
	rule   bool // of an instruction that a program wrote
}

// readDemands adds the constraints of a message of the user and returns its other demands. Those of an instruction
// are its rules.
func (s *history) readDemands(message string, instructs bool) (others []demand) {
	if cut := text.Head(message, maxRequest); len(cut) < len(message) {
		message = cut[:cmp.Or(strings.LastIndexByte(cut, '\n')+1, len(cut))] // not a part of a line
	}
	var rules []string
	if !instructs {
		s.bringBack(text.Head(message, maxLine))
		rules = s.readRules(message)
	}
	own, pasted, _ := divide(message)
	if instructs {
		own, pasted = "", own+pasted
	}
	if said := prose.Sentences(own); len(said) > 0 && !instructs && !strings.HasPrefix(prose.Unmarked(message), said[0]) { // behind what was pasted
		others = append(others, demand{text: strings.Clone(prose.Truncate(prose.OneLine(said[len(said)-1]), maxLine))})
	}
	for _, l := range prose.SplitLines(pasted) { // what a plan consists of
		if !instructs && strings.HasPrefix(l, "##") && strings.Count(l, " ") > minSaidWords && len(others) < maxDemands/2 && !text.Longer(l, maxLine) {
			others = append(others, demand{text: strings.Clone(l), pasted: true})
		}
	}
	for i, part := range []string{own, pasted} {
		for _, x := range prose.Sentences(part) {
			x = prose.OneLine(commandName().ReplaceAllString(x, ""))
			switch {
			case len(x) <= minSentence || text.Longer(x, maxLine) || prose.IsQuestion(x):
			case i == 0 && lifting().MatchString(x):
				s.constraints = slices.DeleteFunc(s.constraints, func(c string) bool { return isAbout(c, x) })
			case i == 0 && isStanding(x):
				s.constraints = slices.DeleteFunc(s.constraints, func(c string) bool { // it is said anew, and more of it
					c = strings.TrimRight(c, ".!")
					return len(c) < len(strings.TrimRight(x, ".!")) && strings.HasPrefix(strings.ToLower(x), strings.ToLower(c))
				})
				s.addConstraint(x)
			case i == 1 && slices.ContainsFunc(rules, func(r string) bool { return strings.Contains(r, x) }):
			case (isDemand(x) || ending().MatchString(x)) && len(others) < maxDemands && !programLine().MatchString(x):
				others = append(others, demand{text: strings.Clone(x), pasted: i == 1, rule: instructs})
			}
		}
	}
	return others
}

// ending begins what is to be done when the task is.
var ending = text.Pattern(`(?i)^(?:when|once|as soon as|after) you(?:['’]re| are|['’]ve| have)?(?: \w+)? (?:satisfied|done|finished|completed|solved|happy)\b`)

const (
	// minHeadings is the number of headings, and minDocument that of lines, from which a
	// message is a document that the user passes on and not what the user writes.
	minHeadings = 2
	minDocument = 15
)

// typed divides a message of the user into what the user wrote and what was pasted: fenced
// text, quotations, lines of programs, what stands behind a line that announces it ("Bob's mail:"), and
// all of a document behind its first paragraph.
func typed(message string) (own, pasted string) {
	own, pasted, quoted := divide(message)
	return own, pasted + quoted
}

// divide is typed, with what is fenced, quoted or of a program apart from what else was pasted.
func divide(message string) (own, pasted, quoted string) {
	headings, lines := 0, 0
	for l := range strings.Lines(message) {
		if strings.HasPrefix(l, "#") {
			headings++
		}
		if strings.TrimSpace(l) != "" {
			lines++
		}
	}
	document := headings >= minHeadings || lines >= minDocument
	var a, b, q strings.Builder
	fenced, behind, program := false, false, false
	for l := range strings.Lines(message) {
		fence := strings.HasPrefix(strings.TrimSpace(l), "```")
		program = isProgramLine(l) || l[0] == ' ' && (program || toolresult.ReportsFailure(text.Trim(l))) // which a terminal wraps
		behind = behind || document && a.Len() > 0 && strings.TrimSpace(l) == "" || document && strings.HasPrefix(l, "#")
		switch {
		case fenced || fence || strings.HasPrefix(l, ">") || program:
			q.WriteString(l)
		case behind:
			b.WriteString(l)
		default:
			a.WriteString(l)
			behind = strings.HasSuffix(strings.TrimSpace(l), ":") && announcing().MatchString(l)
		}
		fenced = fenced != fence
	}
	return a.String(), b.String(), q.String()
}

// said returns what the user said with a request, on one line: all of it, and without what is pasted.
func (r request) said() (whole, short string) {
	said := cmp.Or(withoutCommands(r.head), r.head)
	if strings.Contains(r.tail, codeFence) { // what is pasted may end there
		said += prose.Ellipsis + r.tail
	}
	return prose.OneLine(withoutOutput(said)), prose.OneLine(withoutPastes(said))
}

// withoutOutput returns a message without the middle of each block of records of a log with more than maxOutput bytes.
func withoutOutput(message string) string {
	if len(message) < maxOutput {
		return message
	}
	var b strings.Builder
	size, last := 0, "" // of the block, and the newest line that has no room
	for l := range strings.Lines(message) {
		if !logRecord().MatchString(l) {
			b.WriteString(last)
			size, last = 0, ""
		} else if size += len(l); size > maxOutput && size > len(l) {
			if last != "" { // it is left out
				l = prose.Ellipsis + "\n" + l
			}
			last = l
			continue
		}
		b.WriteString(l)
	}
	return b.String() + last
}

// logRecord is a line of a log: a record in JSON, or one that begins with a time.
var logRecord = text.Pattern(`^\s*(?:\{"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d )`)

// maxOutput is the size, in bytes, from which a block of records of a log in a request is cut.
const maxOutput = 600

// withoutPastes returns a message without what is fenced in it and longer than an excerpt, if it says more than that.
func withoutPastes(message string) string {
	if !strings.Contains(message, codeFence) {
		return message
	}
	var b strings.Builder
	fence, pasted := "", "" // what is open, from where
	for l := range strings.Lines(message) {
		marks := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		switch {
		case fence == "" && len(marks) >= len(codeFence):
			fence, pasted = marks, l
		case fence == "":
			b.WriteString(l)
		case len(marks) >= len(fence) && strings.TrimSpace(l) == marks:
			if pasted += l; len(pasted) > maxExcerpt {
				pasted = prose.Ellipsis + "\n"
			}
			b.WriteString(pasted)
			fence, pasted = "", ""
		default:
			pasted += l
		}
	}
	b.WriteString(pasted) // it has no end
	if b.Len() < minRequest {
		return message
	}
	return b.String()
}

const codeFence = "```"

// isDocument reports whether a long request is a document as a whole, such as the summary of another session, or one that
// a command of the user loads.
func isDocument(said string) bool {
	if first, rest, _ := strings.Cut(said, "\n"); strings.HasPrefix(first, "/") {
		said = strings.TrimLeft(rest, "\n")
	}
	if len(said) <= maxRequest/4 || !strings.HasPrefix(said, "#") {
		return false
	}
	own, _ := typed(said)
	return text.Trim(own) == ""
}

// isReplaced reports whether a request is a document that another one with its title followed.
func (s *history) isReplaced(i int) bool {
	title, _, _ := strings.Cut(s.turns[i].request.head, "\n")
	return s.turns[i].document && slices.ContainsFunc(s.turns[i+1:], func(t *turn) bool {
		return t.document && strings.HasPrefix(t.request.head, title+"\n")
	})
}

// skillMark begins a rule of a skill, which is not the user's.
const skillMark = "The skill says: "

// loadedMark begins the folder of a skill.
const loadedMark = "Skill loaded: "

// ofSkill returns the mark of a line of a skill, and what stands behind it.
func ofSkill(line string) (mark, rest string) {
	if folder, ok := strings.CutPrefix(line, chat.SkillPrefix); ok {
		return loadedMark, folder
	}
	return skillMark, line
}

// recentTurns is the number of turns at the end whose demands are in force.
const recentTurns = 3

// addDemands adds the demands of a turn that are no constraints, below its request. Those of the
// last turns come first.
func (s *history) addDemands(b *itemList, i int, request *item) {
	outdated, r := s.isReplaced(i), s.turns[i].request
	demands := s.turns[i].demands
	if check := verification(r.head + r.tail); check != "" && (i == s.activeTurn() || s.isGoal(r)) {
		demands = append(slices.Clip(demands), demand{text: check, pasted: true})
	}
	for _, d := range demands {
		if outdated && d.pasted || d.rule && strings.HasSuffix(d.text, ":") { // what it leads is not told
			continue
		}
		worth := worthDemand
		if d.pasted {
			worth = worthPasted
		}
		line, own := quoteMark+d.text+"\n", requestMark+d.text+"\n"
		if d.rule {
			mark, rule := ofSkill(d.text)
			line = formatEntry(mark + rule)
			own = line
		}
		it := b.add(sectionConstraints, line, worth*decay(len(s.turns)-i, 16))
		switch it.tier = tierDemands; {
		case s.isRecords() && s.isCarriedOut(i): // what was done tells it
			it.tier = tierOther
		case i == s.activeTurn() && ending().MatchString(d.text):
			it.tier = tierState
		case i >= len(s.turns)-recentTurns && !d.pasted && wishing().MatchString(d.text) && !momentary().MatchString(d.text):
			it.tier, it.value = tierUser, worthConstraint
		}
		switch extended := d.extend(request, prose.OneLine(s.turns[i].request.head)); {
		case extended != "":
			it.section, it.day, it.text, it.extends = sectionRequests, request.day, extended, request
			it.tier = min(max(it.tier, request.tier+1), tierSpare) // after what it extends
		case request != nil:
			it.section, it.day, it.text, it.parent = sectionRequests, request.day, indentMark+it.text, request
		case i != s.activeTurn() && s.isGoal(s.turns[i].request):
			it.section = sectionGoal
		case i == s.activeTurn():
			it.section = sectionTask
		default:
			it.section, it.day, it.at, it.text = sectionRequests, s.dayOf(i), 2*s.turns[i].after, own
		}
	}
}

// extend returns the line of a request up to the end of a demand in which it was cut, "" if it was not.
func (d demand) extend(request *item, said string) string {
	if request == nil {
		return ""
	}
	cut, ok := strings.CutSuffix(request.text, prose.Ellipsis+"\n")
	for at := max(len(requestMark), len(cut)-len(d.text)); ok && at <= len(cut)-minOverlap; at++ {
		if !strings.HasPrefix(d.text, cut[at:]) {
			continue
		}
		_, rest, found := strings.Cut(said, cut[len(requestMark):at]+d.text) // a command may stand before it
		if !found {
			return ""
		}
		if rest != "" {
			rest = prose.Ellipsis
		}
		return cut[:at] + d.text + rest + "\n"
	}
	return ""
}

// minOverlap is the number of bytes of a demand by which it is recognised where a line was cut.
const minOverlap = 12
