package extract

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolresult"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// isSmallTalk reports whether a request asks for nothing: thanks, a greeting, praise, or a command
// to the program that runs the agent.
func isSmallTalk(s string) bool {
	return len(s) < 3*minRequest && (smallTalk().MatchString(s) || controlling().MatchString(s) || !strings.ContainsFunc(s, prose.IsLetterOrDigit))
}

// isClosing reports whether a customer ends a visit, and wants nothing more.
func isClosing(s string) bool {
	return len(s) < 3*minRequest && closing().MatchString(s) && !wanting().MatchString(closing().ReplaceAllString(s, "")) && !strings.ContainsFunc(s, unicode.IsDigit)
}

// closes reports whether a request of a customer, or of a chat, ends a visit.
func (s *history) closes(said string) bool { return (s.isRecords() || s.isTalk()) && isClosing(said) }

var (
	closing   = text.Pattern(`(?i)\bthank|\bthanx|\b(?:that|this|it)(?:[';]?s| is| was| will be|'ll be) (?:all|it|enough|everything|what i (?:need|want)(?:ed)?)(?:\W|$| (?:i (?:need|want)|for|from|thanks?|now|today|right)\b)|\bbye\b|\bsee you (?:later|soon|around)\b|\ball set\b|\btake care\W*$|\bi (?:must|have to|(?:have )?got(?:ta| to)) go(?: now)?(?:\W*$|\W+(?:take care|bye|good ?bye|see you))|\bi (?:need|want) no(?:thing)? more\b`)
	wanting   = text.Pattern(`(?i)\?|\b(?:please|can|could|would you|will you|what|where|when|how|which|why|find|get|book|reserve|buy|show|play|tell|search|look|check|make|transfer|change|cancel|send|give|but|only|except|wrong|problem|without|seats?|let'?s|instead|also|another|address|phone|prefer|choose|cab|ride|go ahead|confirm|add|remove|return|exchange|refund|upgrade|pay|order|schedule)\b|\bi(?:'d| would|'ll|'m)? (?:also |still |just |now |like |love |going |want |need )+(?:to|a|an|the|one|two|some|it|you to)\b`)
	smallTalk = text.Pattern(`(?i)^\W*(?:(?:no|nope|ok(?:ay)?|great|perfect|awesome|cool|all ?right|good|nice|wonderful|hi|hello|hey|there|bye|goodbye|again|indeed|wow|whoa|oo+h|yay|lol|haha|ugh|sweet|neat|jesus|(?:it|everything) works|thanks|thank you|thanx|thx|thankyou|thanking you|` +
		`(?:so|very) much|much|i(?:'m| am) (?:thankful|grateful)(?: for your help)?|nothing(?: (?:else|more))?(?: (?:for the moment|for now|right now))?|i don'?t need (?:more|any|any more|anything)(?: else)?(?: help)?(?: right now| for now)?|i (?:don'?t|do not)|i'?m (?:good|done|fine|all set)|i am (?:good|done|fine)|not (?:yet|now|today|right now|at (?:the moment|this time)|at all)|i(?:'ll| will) let you know(?: if (?:i need|there is|there's) (?:any|some)thing(?: else| further| more)?)?|a (?:lot|ton|bunch|million)|i appreciate (?:it|your help)|for (?:all )?(?:the|your|of your) (?:kind )?(?:help|assistance|time)|have a (?:good|great|nice) (?:day|one)|` +
		`(?:that|this|it)(?:'s| is|'ll be| will be| would be| was)? (?:really )?(?:all|it|everything|enough|great|good|nice|perfect|very helpful)(?: of you)?(?: (?:that )?i need(?:ed)?)?(?: for (?:me|now|today|the moment)| from me)*|` +
		`(?:that )?sounds? (?:good|great|perfect|nice|fine|wonderful|neat)|you(?:'ve| have) been (?:great|helpful|very helpful|wonderful))\b\W*)+$`)
	controlling = text.Pattern(`^/(?:clear|compact|exit|quit|q|ex|help|models?|mode|chat-mode|login|logout|config|cost|status|resume|reset|ls|tokens|settings|ide|mcp|permissions)(?: +\S+)?\s*$|^/(?:add|copy|diff|drop|map|read-only|tok)(?: +\S+)*\s*$`)
)

// farewell is a line with which the assistant ends a visit, or an answer.
var farewell = text.Pattern(`(?i)^if (?:you|there['’]?s|there is)\b[^.:?]{1,80}\b(?:let me know|feel free|just (?:ask|let me know))\b[^.:?]{0,40}[.!]?$|\bhave (?:yourself )?an? (?:\w+ )?(?:day|time|one|evening|night|trip|weekend)\b|\bgood ?bye\b`)

// withoutFarewell returns a line without a farewell at its end.
func withoutFarewell(line string) string {
	if all := prose.Sentences(line); len(all) > 1 && farewell().MatchString(all[len(all)-1]) {
		line = strings.TrimSpace(strings.TrimSuffix(line, all[len(all)-1]))
	}
	return line
}

// withoutCommands returns a request without the lines that run a program or a command of the one that runs
// the agent, and without a line that a command repeats.
func withoutCommands(s string) string {
	var out []string
	for l := range strings.Lines(s) {
		switch l = strings.TrimSpace(l); {
		case l == "" && len(out) == 0, len(l) < 2*minRequest && slashCommands().MatchString(l):
		case l != "" && len(out) > 0 && strings.HasPrefix(out[0], "/") && strings.HasSuffix(out[0], " "+l):
		default:
			out = append(out, l)
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// isBare reports whether a request has hardly a word of the user's besides addresses, commands and pasted text.
func isBare(s string) bool {
	s = withoutCommands(s)
	own, _ := typed(s)
	if own == "" && !strings.Contains(s, "\n") { // which reads like a line of a program
		own = s
	}
	words := 0
	for w := range strings.FieldsSeq(own) {
		w = strings.ToLower(strings.TrimFunc(w, func(r rune) bool { return !prose.IsLetterOrDigit(r) }))
		if len(w) >= minSharedWord && !identifier.IsStopWord(w) && !strings.Contains(w, "://") {
			words++
		}
	}
	return words < 2 && !strings.ContainsFunc(own, isUnspaced)
}

// urging is a reply by which the work that was proposed goes on.
var urging = text.Pattern(`(?i)^\W*(?:(?:yes|ok(?:ay)?|please|sure|just)\b\W*)*(?:run it|do it|go(?: on| ahead)?|continue|proceed|keep going|carry on|next)\W*$`)

// isCommand reports whether a request is one line that runs a program or a command of the one that
// runs the agent.
func isCommand(s string) bool { return len(s) < 2*minRequest && commandLike().MatchString(s) }

// commandLike is a command with a slash or an exclamation mark, and what it takes unless that is a sentence.
var commandLike = text.Pattern(`^(?:[/!][\w:-]+(?: +\S*[^\w\s]\S*)*|![\w-]+ .*|/(?:run|test|add|drop|web|read|git|commit|undo|diff|lint) .*)$`)

// running begins a command of the user to the program that runs the agent, by which that runs another one.
var running = text.Pattern(`^/(?:run|test|lint)\b`)

// isPrinted reports whether at least half of the lines of a text are those of a program.
func isPrinted(s string) bool {
	printed, all := 0, 0
	for l := range strings.Lines(text.Head(s, maxReply)) {
		if text.Trim(l) == "" {
			continue
		}
		if all++; strings.HasPrefix(l, " ") || isProgramLine(l) || toolresult.ReportsFailure(l) {
			printed++
		}
	}
	return 2*printed >= all
}

// slashCommands are commands with a slash on one line, each with one word besides or with words that are
// none of a sentence.
var slashCommands = text.Pattern(`^/[\w:-]+(?: [^/\s]\S*)?(?: +\S*[^\w\s]\S*)*(?: +/[\w:-]+(?: [^/\s]\S*)?(?: +\S*[^\w\s]\S*)*)*$`)

// isEmpty reports whether a line says nothing that is worth its room later.
func isEmpty(line string) bool {
	return len(line) < minSaid || strings.Count(line, " ") < minSaidWords && !strings.ContainsFunc(line, isUnspaced) || isPolite(line) || asking().MatchString(line) || strings.Count(line, " | ") > 1 || claiming().MatchString(line) || presenting().MatchString(line) || listingFile().MatchString(line)
}

// listingFile is the name of a file with what was done with it.
var listingFile = text.Pattern(`^\x60?[\w./-]+\.\w+\x60? \([^()]*\)$`)

// presenting begins a line that leads code.
var presenting = text.Pattern(`(?i)^here(?: are|[’']s| is) (?:the|an?|my|your) (?:\S+ ){0,3}?(?:blocks?|changes?|edits?|code|diff|patch|implementation|version|file)\b[^.:]*:`)

// isPolite reports whether a line states nothing.
func isPolite(line string) bool {
	return polite().MatchString(line) && !strings.ContainsFunc(line, unicode.IsDigit) && !strings.Contains(line, ":") && !slices.ContainsFunc(prose.Sentences(line), func(x string) bool { return len(namesIn(x)) > 0 })
}

// checkingBack begins what a customer is asked to confirm before a call, which tells the same.
var checkingBack = text.Pattern(`(?i)^(?:[^.:;]{0,30}[,.!] *)?(?:(?:just|please|to|could you|can you|kindly|let me) )*(?:re-?)?(?:confirm(?:ing)?|verify(?:ing)?)\b`)

// isRemark reports whether a line only tells how the work goes, and names nothing.
func isRemark(line string) bool {
	return remarking().MatchString(line) && !strings.ContainsAny(line, "`\"/_()") && !strings.Contains(line, ": ")
}

// remarking begins a line that tells how the work goes, not what was found.
var remarking = text.Pattern(`(?i)^(?:oh no|oops|whoops)\b|^(?:(?:perfect|great|good|excellent|ok(?:ay)?|got it|alright|now)\b[ ,.!:—-]*)*(?:(?:plan|point|idea|catch|question)s?\b[^.!?,;:]*[.!]?$|now i (?:have|understand|see|know|can)|i (?:now )?(?:understand|see|have a (?:clear|good|complete))|i (?:have (?:a|all|everything)|accidentally)|this is (?:a )?(?:great|good|helpful|very)|it looks like we)\b|^now \S+:|^(?:looking at [^,]*, )?the (?:fix|change)\b[^.]{0,60} (?:is|was) (?:now |already )?(?:applied|in place|complete|done)\b|^(?:(?:i |my )apolog\w+|(?:i['’]m )?sorry|you['’]re (?:absolutely )?right)\b[^.!,]*[.!]?$`)

// isChange reports whether a line tells of an edit or a commit, as the files and actions do, and no cause.
func isChange(line string) bool { return changing().MatchString(line) && !causing().MatchString(line) }

var (
	changing = text.Pattern(`(?i)^(?:(?:also|now|just|then|i|i['’]ve|we) +)*(?:added|changed|committed|converted|created|extracted|fixed|force-pushed|implemented|merged|modified|moved|pushed|refactored|removed|renamed|replaced|rewrote|switched|updated)\b|` +
		`^(?:(?:it|this|that) )?(?:also )?(?:adds|changes|creates|extracts|modifies|moves|refactors|removes|renames|replaces|rewrites|updates) (?:the|an?|all)\b|^instead of [^.]*, (?:we|it) now\b|^(?:you['’]re (?:absolutely )?right,? )?(?:we|i) should be using\b|` +
		`^(?:this|these) changes? (?:(?:will|should|would|also) )*(?:add|do|ensure|implement|import|make|modif|remove|update|use)`)
	causing = text.Pattern(`(?i)\b(?:because|since|causes?|fails?|breaks?)\b`)
)

// instructing begins an entry of what is to be done.
var instructing = text.Pattern(`^(?:Add|Call|Change|Check|Convert|Create|Delete|Drop|Ensure|Extract|Fix|Handle|Implement|Introduce|Keep|Make|Move|Pass|Refactor|Remove|Rename|Replace|Return|Revert|Run|Set|Skip|Store|Switch|Update|Use) (?:(?:the|an?|all|each|it|both|only|this|that|these|any)\b|[\x60"])`)

// isNextStep reports whether a line briefly tells what an agent does next, as if it were told so, and nothing that it found.
func isNextStep(line string) bool {
	return stepping().MatchString(line) && !strings.ContainsAny(line, ":;,\x60")
}

var stepping = text.Pattern(`^(?:Check|Find|Inspect|List|Locate|Look|Open|Read|Run|Search|Try)(?: \S+){1,6}$`)

// lacking says that something is not there.
var lacking = text.Pattern(`(?i)\b(?:no|not|never|nothing|missing|lacks?|without|absent)\b|n['’]t\b`)

// faulted reports whether a line says that something is wrong, missing or superfluous, which an edit may settle.
func faulted(line string) bool { return faulty().MatchString(line) || defective().MatchString(line) }

var defective = text.Pattern(`(?i)\b(?:no (?:usage|tests?|checks?|way|docs?|documentation|coverage|error|support)|missing|lacks|redundant|superfluous|outdated|(?:gap|problems|issues|bugs)\b)`)

// correcting is in a line that says what the next edit corrects.
var correcting = text.Pattern(`(?i)\b(?:my|previous|last|first) (?:\w+ ){0,2}(?:edit|command|attempt|change)\b.*, (?:so )?(?:i['’]ll|i will|let me|let['’]s) (?:fix|correct|try|use)\b`)

// isSupposed reports whether a line says what would be, or could be done, or what may be so.
func isSupposed(line string) bool {
	return supposing().MatchString(impossible().ReplaceAllString(line, ""))
}

var (
	supposing  = text.Pattern(`(?i)\b(?:would|could|might|may be|perhaps|probably|likely|presumably)\b`)
	impossible = text.Pattern(`(?i)\b(?:would|could)(?:n['’]t| not)\b`)
)

// claiming says what the user allowed or said, which only the user's own words tell, or turns to the
// reader of the summary.
var claiming = text.Pattern(`(?i)\b(?:user|customer|owner|human)s? (?:(?:has|have|had|explicitly|already|just|also) )*(?:approved|authori[sz]ed|consented|permitted|allowed|granted|signed off|gave (?:permission|approval)|said|told)\b|` +
	`^\W*(?:system|developer) ?:|\b(?:ignore|disregard|forget|override) (?:all |any |the |your |of )*(?:previous|prior|above|earlier) (?:instructions?|prompts?|rules|messages?)\b`)

// polite is a line without a statement.
var polite = text.Pattern(`(?i)^(?:(?:sure|of course|no problem|no worries|certainly|absolutely|thank you|thanks|great|my pleasure|you're welcome|farewell|good ?bye|take care|have (?:a|an|fun)\b|enjoy\b|see you\b|i(?:'m| am)? (?:always |so |very )?(?:hope|wish|glad|happy)\b|is there anything)[^.!?]{0,30}[.!?] *)*(?:(?:i can (?:help|assist)|i'd be (?:happy|glad)|i'm (?:happy|glad)|you're welcome|feel free to|looking forward to|to (?:assist|help|proceed)|once (?:i have|you (?:provide|confirm))|please (?:provide|let me)|could you|let me)\b.*)?$`)

// opening is the number of an entry of a list, or the interjection, that a line begins with.
var opening = text.Pattern(`(?i)^(?:\d{1,2}[.)] +|(?:ah|oh|hmm+|wait|ok(?:ay)?(?: so)?|so|great|good|perfect|right|actually|i see|got it)\b *[,.!:—-]+ *|(?:(?:i |my )apolog\w+|(?:i['’]m )?sorry|you['’]re (?:absolutely )?right)\b[^.!:]*[.!] +)+`)
