package summary

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// ban is what a message of the user forbids or puts off: stems of deeds, of what they are done to, and
// of times. own are the stems of the sentence of what is to be kept.
type ban struct {
	deeds, objects, times []string
	own                   string
}

var (
	// forbids matches the beginning of a clause that forbids something.
	forbids = text.Pattern(`(?i)^\W*(?:(?:and|but|also|please|so|then|you|we|i|agents?|really|under\s+no\s+circumstances|must|should|may|can|ever)\s+)*(?:do\s+not|don['’]?t|never|not|n[ãa]o|non|nunca|jamais|mustn['’]?t|shouldn['’]?t|can['’]?t|cannot|no|avoid|stop|refrain\s+from|hands\s+off|hold\s+off(?:\s+on)?)\s+(?:(?:ever|even|you|us|me|to|please|want|allowed|let)\s+){0,4}`)
	// keeps matches the beginning of a clause about what is to stay.
	keeps = text.Pattern(`(?i)^\W*(?:(?:and|but|also|please|so|then|et|y|und|aber|bitte)\s+)*(?:keep|leave|retain|preserve|behalte|lass|garde[rz]?|laisse[rz]?|conserve[rz]?|deja|conserva|mant[eé]n|guarda|deixa|mantenha|tieni|lascia|conserva)\s`)
	// ruledOut matches the end of a clause about what is not to be.
	ruledOut = text.Pattern(`(?i)\b(?:(?:is|are)(?:\s+not|n['’]t)\s+(?:an\s+option|allowed|acceptable|permitted|ok(?:ay)?)|(?:is|are)\s+(?:out\s+of\s+the\s+question|off\s+(?:the\s+table|limits)|forbidden|taboo)|(?:waits?|(?:can|must|has\s+to|have\s+to)\s+wait)\s+(?:until|till|for))\b`)
	// endsInNo matches a sentence about something that is answered with no.
	endsInNo = text.Pattern(`(?i)^\W*(?:as\s+)?(?:for|about|regarding)\s[^,:.!?\n]{1,60}[,:]\s+no\W*$`)
	// alsoNot matches the beginning of a clause about what is forbidden, too.
	alsoNot = text.Pattern(`(?i)^\W*(?:nor|or|neither|nem|ni|né|noch|oder)\s`)
	// pronoun matches a word for what was named before.
	pronoun = text.Pattern(`(?i)\b(?:it|them|that|this|these|those)\b`)
	// mayGo matches that something may be removed.
	mayGo = text.Pattern(`(?i)\b(?:(can|may|should|must)\s+(?:now\s+)?go|gone)\b`)
	// putsOff matches that it is forbidden up to a time.
	putsOff = text.Pattern(`(?i)\b(?:before|until|till)\b`)
	// noDeed matches what follows a negation and forbids nothing.
	noDeed = text.Pattern(`(?i)^(?:forget|worry|know|think|understand|see|remember|mind|hesitate|care|believe|work|need|have|yet|sure|idea|problem|longer|more|now|really|get|find|feel|expect|like|one|way)\b`)
	// permits matches words of permissions, requests and orders.
	permits = text.Pattern(`(?i)\b(?:may|can|should|must|shall|allow\w*|approv\w*|agree\w*|authori[sz]\w*|permit\w*|permission|consent\w*|accept\w*|cleared|clearance|ok|okay\w*|fine|happy|good|free|welcome|yes|nod|mind|cares?|likes?|exempt\w*|trusts?|discretion|by\s+default|proceed|go-?\s?ahead|wants?|wanted|wish\w*|ask(?:s|ed)|request\w*|told|tells|instruct\w*|orders|ordered|demand\w*|insist\w*|said|says|decided|next|(?:continue|resume)\s+(?:by|with)|readers?|successors?|todo|to\s+be|important|attention|override|urgent|note\s+to|dear|exception|standing|agents?|(?:got|came)\s+back|at\s+will|freely|(?:per|according\s+to)\s+the\s+(?:` + person + `))\b|[👍✅✔☑]`)
	// actsAs matches a person as the subject or the object of a sentence.
	actsAs = text.Pattern(`(?i)(?:^\W*|[:;,(]\s*|\b(?:the|by|with|from)\s+)(?:` + person + `)(?:[^'’\w]|$)`)
	// quotes matches what the checks of quotations judge.
	quotes = text.Pattern("\"[^\"\n]*\"|“[^”\n]*”")
	// stays matches words for what is kept.
	stays = text.Pattern(`(?i)\b(?:keep|kept|stay|leav|left|retain|preserv|untouched|gard|laiss|conserv|beh[aä]lt|bleib|d[eé]j[aóe]|manten|mantien|guard|deix|tien)`)
	// doer matches what the user does or what is done by the user.
	doer = text.Pattern(`(?i)\b(?:` + person + `)\s+(?:will\s+|wants\s+to\s+|has\s+to\s+)?(\w+)|\b(\w+)\s+by\s+the\s+(?:` + person + `)\b`)
	// thingSays matches the beginning of a sentence about what a tool says.
	thingSays = text.Pattern(`(?i)^\W*(?:\w+\s+){0,3}?(?:notes?|pages?|tools?|files?|comments?|logs?|e?mails?|tickets?|readme|runbook|handbook|documents?|outputs?|results?|notices?|banners?|wiki)\b[^.;:\n]{0,40}?\s(?:claims?|claimed|says?|said|states?|stated|reads?|asks?|asked|demands?|wants?|proposes|notes?|suggests?)\b`)
	// lifts matches that a rule does not hold any more.
	lifts = text.Pattern(`(?i)\b(?:` + lifting + `)\w*\s+(?:\w+\s+){0,3}(?:` + forbidding + `)\b|\b(?:` + forbidding + `)\b[^.!?;\n]{0,60}?\s(?:` + ended + `)|\b(?:chang\w+|changed)\s+(?:(?:their|his|her|its)\s+(?:mind|plans?|position)|course)\b|\bc[ao]me\s+a?round\b|\bno\s+longer\s+(?:wants?|needs?|insists?|requires?|minds?|objects?|opposes?)\b`)
	// excuses matches words of sentences that only propose, await or rule out.
	excuses = text.Pattern(`(?i)\?|\b(?:until|unless|if|whether|only|once\s+(?:the|an?|it|they|that|this|\w+\s+(?:is|are|has|have))|when|pending|await\w*|wait(?:s|ing)?|needs?|requir\w+|unclear|undecided|open|propos\w+|offer\w*|suggest\w*|recommend\w*|would|could|declin\w+|refus\w+|reject\w*|forb[ia]d\w*|prohibit\w*|bans?|banned|rul(?:ed|es|ing)\s+out|postpon\w+|deferr?\w*|hold|paused|block\w*|against|oppos\w*|objects|objected|warn\w*|later(?:[^\w\s]|\s+(?:on|than|when|if|today)\b|\s*$)|to\s+check|(?:approve|confirm|agree|answer|ask|check|decide|talk)\w*\b[^.!?\n]{0,40}\bfirst|instead|why|how|fail\w*|mistake\w*|violat\w*|off[\s-]limits|alone|untouched|except|excluding|(?:other|apart)\s+(?:than|from)|before\s+(?:the|an?|any|it|that|this|[b-df-z]\w+ing))\b|\b(?:assistant|agent|model|i|we)\s+(?:\w+\s+){0,2}(?:asks?|asked|requested|wants?)\b|\basked\s+(?:the\s+)?(?:` + person + `)\b|^\W*(?:\d+\W+)?asked\b|\b(?:him|her|them)sel(?:f|ves)\s*(?:$|[,.;)])|\b(?:owner|(?-i:[A-Z][a-z]+))['’]s\s+(?:job|task|duty)\b`)
	// andNot matches the beginning of a part of a clause that forbids.
	andNot = text.Pattern(`(?i)\s+(?:and|und|et|y|e)\s+((?:do|to|does|not|never|without|don['’]t|nicht|kein\w*|ne|no|não)\b)`)
	// liftedNot matches that a rule was not lifted.
	liftedNot = text.Pattern(`(?i)\b(?:not|never|n['’]t|nor)\s+(?:\w+\s+){0,2}(?:` + ended + `|` + lifting + `)`)
	// approvedHead matches a heading of things that were approved, yesCell a cell that says yes, approvalCell the head
	// of such a column.
	approvedHead = text.Pattern(`(?i)^[\s#>*_+•☑✅-]*(?:\[x\]\s*)?(?:(?:already|pre|user|the|actions?|changes|steps)[\s-]+){0,2}(?:approved|agreed|authori[sz]ed|signed[\s-]off|green-?lit|cleared|(?:allowed|permitted)\s+(?:actions?|changes|commands|steps))\b[^.!?:\n|]{0,40}(?::|[*_]*\s*$)`)
	approvalCell = text.Pattern(`(?i)\|[^|\n]*\b(?:approv(?:ed|al)|consent|permission|permitted|allowed|sign-?off|signed\s+off|user\s+ok|ok['’]?d|authori[sz]ed|cleared)\b[^|\n]*\|`)
	yesCell      = text.Pattern(`(?i)\|\s*(?:[✅✔☑👍x]|yes|ok|granted|given|approved|(?:by\s+)?(?:the\s+)?(?:` + person + `))[^|\n]{0,30}(?:\||$)`)
)

const (
	// ended are words for a rule that does not hold any more.
	ended = `(?:(?:is|was|are|were|(?:has|have)\s+(?:\w+\s+)?been)\s+(?:(?:now|since|only|just)\s+)?(?:lifted|relaxed|waived|dropped|void|moot|suspended|cancell?ed|revoked|rescinded|overrul\w+|overridden|withdrawn|retracted|over|off|for|about|limited|meant)|(?:only\s+)?appl(?:y|ies|ied)\s+(?:only\s+)?to\s+(?:other|another)|no\s+longer\s+(?:appl|hold|bind|valid|in)\w*|expired|ended|(?:only\s+)?(?:held|lasted|counted|stood)\s+(?:only\s+)?(?:for|until|till|during|to))\b`
	// maxTitle is how many blanks the title of a section has at most.
	maxTitle = 4
	// endMarks may stand behind a sentence or an item.
	endMarks = " \t.!?;*_)|"
	// times are the stems of times, weak those of words that say little about what is meant.
	times = " monda tuesd wedne thurs frida satur sunda today tomor tonig week month night morni eveni noon janua febru april june july augus septe octob novem decem "
	weak  = " old new file all any every anyth every everyt someth data code thing stuff ever never let also more first check "
)

// addBans indexes what a sentence of the user forbids or keeps, given without what it refuses and the rest. A
// pronoun points to what stands in front of it, or in the sentence before.
func (e *SourceIndex) addBans(before, kept, refused string) {
	for _, clause := range clauseEnds().Split(kept, -1) {
		if m := keeps().FindStringIndex(clause); m != nil {
			if objects := strings.Fields(stemsOf(withoutFolders(clause[m[1]:]))); len(objects) > 0 {
				e.bans = append(e.bans, ban{deeds: []string{"delet", "cance", "repla"}, objects: objects, own: stemsOf(kept)})
			}
		}
	}
	if strings.TrimSpace(kept) != "" {
		before = kept
	}
	from, known := 0, len(e.bans)
	if bare := thanks().ReplaceAllString(refused, " "); endsInNo().MatchString(bare) { // what stands in front of it
		e.bans = append(e.bans, ban{objects: strings.Fields(stemsOf(bare))})
	}
	for _, m := range append(clauseEnds().FindAllStringIndex(refused, -1), []int{len(refused), len(refused)}) {
		clause := refused[from:m[0]]
		if spares().MatchString(clause) {
			e.bans = append(e.bans, ban{deeds: []string{"chang", "edit", "modif", "updat", "fix", "delet", "repla"}, objects: strings.Fields(stemsOf(withoutFolders(sparing().ReplaceAllString(clause, " "))))})
		}
		if n := ruledOut().FindStringIndex(clause); n != nil {
			e.addRefused(stemsOf(clause[:n[0]]), false)
		}
		if n := forbids().FindStringIndex(clause); n != nil && !noDeed().MatchString(clause[n[1]:]) {
			deed, _, _ := strings.Cut(clause[n[1]:], " without ") // which may be done
			stems := stemsOf(deed)
			if pronoun().MatchString(deed) {
				stems += strings.Join(slices.DeleteFunc(strings.Fields(stemsOf(before)), isDeed), " ") + " "
			}
			e.addRefused(stems, putsOff().MatchString(clause))
		}
		if n := alsoNot().FindStringIndex(clause); n != nil && len(e.bans) > known {
			last := &e.bans[len(e.bans)-1]
			last.objects = append(last.objects, strings.Fields(stemsOf(clause[n[1]:]))...)
		}
		from = m[1]
	}
}

// paths matches the folders and the kind of a file in its path, sparing words of clauses that spare something.
var (
	paths   = text.Pattern(`(?:[\w.-]+/)+|\.\w{1,5}\b`)
	sparing = text.Pattern(`(?i)\b(?:hands|off|limits|leave|alone|untouched|unchanged|as|is|it|they)\b`)
)

// withoutFolders returns a clause with the bare names of files.
func withoutFolders(clause string) string { return paths().ReplaceAllString(clause, " ") }

// addRefused indexes refused deeds by the stems of a clause or of a question, from deed to deed. Those that are
// put off may be done at the time that is named.
func (e *SourceIndex) addRefused(stems string, putOff bool) {
	var r ban
	add := func() {
		if strings.Contains(stems, " anyth ") && !slices.ContainsFunc(r.objects, func(w string) bool { return strings.Contains(times, " "+w+" ") }) {
			r.objects = nil // to any place
		}
		if n := len(r.objects); n > 0 || slices.ContainsFunc(r.deeds, isDeed) || len(r.deeds) > 0 && strings.Contains(stems, " anyth ") {
			e.bans = append(e.bans, r)
		}
	}
	if !e.keep(len(stems)) {
		return
	}
	for i, w := range strings.Fields(stems) {
		switch {
		case putOff && strings.Contains(times, " "+w+" "):
			r.times = append(r.times, w)
		case strings.Contains(weak, " "+w+" "):
		case i == 0, isDeed(w) && len(r.objects) == 0:
			r.deeds = append(r.deeds, w)
		case isDeed(w):
			add()
			r = ban{deeds: []string{w}}
		default:
			r.objects = append(r.objects, w)
		}
	}
	add()
}

func isDeed(w string) bool { return strings.Contains(allDeeds, " "+w+" ") }

// isAbout reports whether stems name a deed of a ban, or one of its kind, and what it is done to.
func (r *ban) isAbout(stems string) bool {
	done, objects := 0, r.objects
	for _, d := range r.deeds {
		if hasStem(stems, d) || slices.ContainsFunc(deeds[1:], func(kind string) bool {
			return strings.Contains(kind, " "+d+" ") && slices.ContainsFunc(strings.Fields(kind), func(w string) bool { return strings.Contains(stems, " "+w+" ") })
		}) {
			done++
		}
	}
	if own := slices.DeleteFunc(slices.Clone(objects), func(w string) bool { return strings.Contains(environments, " "+w+" ") }); len(own) > 0 {
		objects = own
	}
	if done == 0 && len(objects) > 1 && among(objects, stems) && slices.ContainsFunc(strings.Fields(" permi ban rule restr "), func(w string) bool { return strings.Contains(stems, " "+w+" ") }) {
		return true // without the deed, as in "X is permitted"
	}
	return (done > 0 || len(r.deeds) == 0) && (len(objects) == 0 || done > 1 && done == len(r.deeds) || slices.ContainsFunc(objects, func(w string) bool { return hasStem(stems, w) }))
}

// refuses reports whether a message of the user refuses what stems are about, and none asks for it or agrees.
func (e *SourceIndex) refuses(sentence string) bool {
	stems := stemsOf(sentence)
	return slices.ContainsFunc(e.bans, func(r ban) bool {
		if r.own != "" && (stays().MatchString(sentence) || !slices.ContainsFunc(clauseEnds().Split(sentence, -1), func(clause string) bool { return r.isAbout(stemsOf(clause)) })) {
			return false
		}
		if !r.isAbout(stems) || slices.ContainsFunc(r.times, func(w string) bool { return strings.Contains(stems, " "+w+" ") }) && !strings.Contains(sentence, "before") {
			return false
		}
		return !slices.ContainsFunc(e.statements, func(s statement) bool {
			known := s.stems
			if s.agrees {
				known += s.about
			}
			return !s.tells && r.isAbout(known) && (r.own == "" || !strings.Contains(s.stems, r.own))
		})
	})
}

// retells reports whether a message of the user says most of what words say.
func (e *SourceIndex) retells(words string) bool {
	want := strings.Fields(stemsOf(words))
	most := func(stems string) bool {
		n := 0
		for _, w := range want {
			if hasStem(stems, w) {
				n++
			}
		}
		return 3*n >= 2*len(want)
	}
	return claimed(words) == "" || slices.ContainsFunc(e.statements, func(s statement) bool { return most(s.stems) || s.agrees && most(s.about+s.stems) }) ||
		refuses().MatchString(words) && slices.ContainsFunc(e.bans, func(r ban) bool {
			return most(" " + strings.Join(slices.Concat(r.deeds, r.objects, r.times), " ") + " ")
		})
}

// allowsRefused reports whether a folded sentence says that the user allows, wants or orders what a message of
// the user refuses, in any wording.
func (e *SourceIndex) allowsRefused(sentence string) bool {
	stems := stemsOf(mayGo().ReplaceAllString(sentence, "$1 remove"))
	if !slices.ContainsFunc(e.bans, func(r ban) bool { return r.isAbout(stems) }) || technical().MatchString(sentence) {
		return false
	}
	if !lifts().MatchString(sentence) || liftedNot().MatchString(sentence) {
		agrees := agreeable().MatchString(sentence) || tellsForeign(sentence)
		if !agrees && !permits().MatchString(sentence) && !telling().MatchString(sentence) && !actsAs().MatchString(sentence) {
			return false
		}
		sentence = claimed(sentence)
		bare := quotes().ReplaceAllString(sentence, " ")
		of := permits().FindStringIndex(bare)
		if (of == nil || byScript().MatchString(bare[:of[0]])) && !agrees && !telling().MatchString(bare) && !actsAs().MatchString(bare) || thingSays().MatchString(bare) && !namesPerson().MatchString(bare) || e.doneByUser(bare) {
			return false
		}
	}
	return e.refuses(mayGo().ReplaceAllString(sentence, "$1 remove"))
}

// doneByUser reports whether a sentence tells that the user does what he said to do himself.
func (e *SourceIndex) doneByUser(sentence string) bool {
	m := doer().FindStringSubmatch(sentence)
	return m != nil && slices.ContainsFunc(e.statements, func(s statement) bool { return s.own && hasStem(s.stems, strings.TrimSpace(stemsOf(m[1]+m[2]))) })
}

// claimed returns what a sentence says without what it forbids, "" if it only proposes, awaits or rules out.
func claimed(sentence string) string {
	plain := strings.NewReplacer("would like", "wants", "is waiting for", "wants").Replace(agreeable().ReplaceAllString(sentence, " "))
	if excuses().MatchString(plain) {
		return ""
	}
	kept, _ := partsOf(andNot().ReplaceAllString(plain, ", $1"))
	return kept
}

// markListed marks the sentences of an answer that allow what the user refuses, and the items and rows of what is
// said to be approved that no message approves.
func (e *SourceIndex) markListed(answer string) string {
	var spans [][2]int
	fence, at, headed, columns := "", 0, false, false
	wanted := false // the heading is of what the user wants
	var bullet byte // of the list below the heading of what is approved
	for line := range strings.Lines(answer) {
		start := at
		at += len(line)
		code := fence != ""
		fence = fenceAfter(fence, line)
		bare := strings.TrimSpace(line)
		headed = headed && (bullet == 0 || bare != "" && bare[0] == bullet)
		if code || fence != "" || bare == "" || blockStart(line) > 0 {
			continue
		}
		folded, index := e.withoutNames(text.Fold(strings.TrimRight(line, "\r\n")))
		head := approvedHead().FindStringIndex(folded)
		items := ""
		switch item := isItem(bare); {
		case bare[0] == '|':
			if strings.Contains(bare, "---") {
				continue
			}
			columns = columns || approvalCell().MatchString(folded)
			if columns && yesCell().MatchString(folded) {
				items = folded
			}
		case head != nil && head[1] == len(strings.TrimRight(folded, " ")):
			headed, bullet, columns = true, 0, false
			continue
		case head != nil:
			items = folded[head[1]:]
		case item && headed:
			items, bullet = folded, bare[0]
		default:
			headed, columns = false, false
		}
		mark := func(end int) {
			if strings.HasPrefix(folded[end:], unbacked) {
				return
			}
			if index != nil {
				end = index[end]
			}
			spans = append(spans, [2]int{start + end, start + end})
		}
		if e.toldInOtherScript(line) || e.tellsRefused(line) {
			end := start + len(strings.TrimRight(line, "\r\n"+endMarks+"。！？"))
			if !strings.HasPrefix(answer[end:], unbacked) && !strings.HasSuffix(answer[:end], strings.TrimRight(unbacked, ")")) {
				spans = append(spans, [2]int{end, end})
			}
			continue
		}
		label := asOfUser().FindString(folded)
		switch {
		case label == folded && label != "":
			wanted = true
			continue
		case bare[0] == '#', strings.HasSuffix(strings.TrimRight(folded, endMarks), ":") && !strings.Contains("-*+", bare[:1]):
			wanted = false
		}
		if items != "" && e.unapproved(items) {
			mark(len(strings.TrimRight(folded, endMarks)))
			continue
		}
		if strings.HasPrefix(bare, "## ") && strings.Count(bare, " ") <= maxTitle {
			continue
		}
		from := 0
		masked := folded
		if strings.ContainsAny(folded, "\"“`") {
			masked = quotedText().ReplaceAllStringFunc(folded, withoutEnds)
		}
		for _, sentence := range sentencesOf(masked) {
			sentence = folded[from : from+len(sentence)]
			said := sentence
			if wanted || label != "" {
				said = "the user wants: " + sentence
			}
			if !strings.Contains(sentence, strings.TrimSpace(unbacked)) && (e.allowsRefused(said) || e.invents(said)) {
				mark(from + len(strings.TrimRight(sentence, endMarks)))
			}
			from += len(sentence)
		}
	}
	return text.ReplaceFolded(answer, nil, spans, slices.Repeat([]string{unbacked}, len(spans)))
}

// withoutEnds returns a quotation without ends of sentences in it but for its own, and as long.
func withoutEnds(q string) string {
	last := max(0, len(q)-4)
	return strings.NewReplacer(".", ",", "!", ",", "?", ",", ";", ",").Replace(q[:last]) + q[last:]
}

// unapproved reports whether one of some things that are said to be approved is a deed that no message approves.
func (e *SourceIndex) unapproved(items string) bool {
	if strings.Contains(items, strings.TrimSpace(unbacked)) {
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(items, func(r rune) bool { return r == ',' || r == ';' }), func(item string) bool {
		return slices.ContainsFunc(strings.Fields(stemsOf(item)), isDeed) && !e.approved(approval{what: item})
	})
}
