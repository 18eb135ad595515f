package extract

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Demands of a user are sentences with one of constraintWords. Those that hold until the
// user says otherwise are constraints; the others, and those in pasted text, are kept as what
// was said.
var (
	// imperative begins with a demand.
	imperative = text.Pattern(`(?i)^(?:(?:please|also|and|so|but|ok|okay|yes|no|note|remember|important|then|just|actually|btw|now|again|hey|sure|well|oh|hmm+|ah)[,:;!.]* +)*` +
		`(?:never|always|avoid|prefer|under no circumstances|from now on|in (?:the )?future|you (?:must|should|may) always|you (?:must|should|may|can) (?:not|never|only)|(?:don'?t|do not) (?:ever|touch)|make sure (?:you |to )?(?:always|never)|it'?s important)\b`)
	// brief begins a demand that holds however short it is.
	brief = text.Pattern(`(?i)^(?:(?:please|and|also)[, ]+)?(?:never|always|from now on,?) +\w+ +\S+`)
	// preferring begins what the user likes or does not want, until it is taken back.
	preferring = text.Pattern(`(?i)^(?:(?:please|also|and|but|note|remember|then|just|btw|oh)[,:;!.]* +)*(?:i (?:\w+ )?prefer |(?:do not|don'?t) (?:use|add|commit|push|mention|include|introduce) |keep (?:the|all|our|my|every) \w+ |use \S+(?: \S+)?,? (?:not|never|instead of|rather than) |` +
		`no \S+(?: \S+)? in (?:the |any |our )?(?:commits?|code|comments?|messages?|pull requests?|prs?|docs?|documentation|tests?|titles?|descriptions?|output|answers?|names?)\b)`)
	// lifting is in what takes back a demand.
	lifting = text.Pattern(`(?i)\byou (?:can|may|are (?:now )?(?:free|allowed) to)\b.*\b(?:now|again|after all)\b|\b(?:rule|restriction|constraint|ban|demand)s? (?:is|are)(?: now)? (?:off|lifted|void|gone|over|dropped|obsolete|no longer)\b|\b(?:rule|restriction|constraint|ban|demand) no longer (?:applies|holds|counts)|` +
		`\b(?:forget|drop|ignore|lift) (?:the|that|my) (?:\w+ )?(?:rule|restriction|constraint|ban|demand)\b|\bit'?s (?:ok|okay|fine)(?: now)? to\b.*\b(?:now|again|after all)\b`)
	// particular is in a preference about one place in the code.
	particular = text.Pattern(`(?i)\w\(\)|\binstead of (?:the|this|that|those)\b`)
	// forGood is in what a customer wants beyond the visit.
	forGood = text.Pattern(`(?i)\b(?:always|never|every|usually|generally|in general|from now on|in (?:the )?future|allerg\w+|diet|(?:am|['’]m|is|are|['’]re)(?: an?)?(?: strict)? (?:vegan|vegetarian)|can only|remember|don'?t ever)\b`)
	// pointing is in a demand that is not understood without what was said before.
	pointing = text.Pattern(`(?i)\b(?:it|that|this|them|those|these)\b`)
	// rule says what must be so, by whatever but the user.
	rule = text.Pattern(`(?i)\b(?:must(?:n't)?|(?:should|may) always|(?:should|can|may) (?:never|not (?:be|have|use|do|touch|change|add|write|run|break|need))|(?:you|we|it|they|everything|agents?|commits?|tests?|code) (?:\w+ )?(?:should|can|may) only|i can only (?:eat|use|pay|work|travel|fly|drive)|will (?:never|always)|shouldn'?t|(?:always|usually|generally) prefer|(?:directive|principle|rule|policy) (?:here )?is|i(?:'d| would)? only (?:ever )?want|i never (?:want|like)|i (?:don'?t|do not) (?:want|like) (?:you|any|to (?:ever|see)|it when))\b`)
	// momentary is what happened, what the user thinks, or what holds for the moment only.
	momentary = text.Pattern(`(?i)^\W*this \w+ (?:must|should)\b|^\W*(?:wrong|actually|nope)\b|^(?:\W*(?:yes|no|ok|hmm+|ah|oh|well|so|and|but)[,.! ]+)*(?:i (?:just|think|was|did|don'?t (?:think|know|see|remember|have|get|understand)|can'?t|cannot|couldn'?t|tried|saw|ran|got|have|am|'m)|i (?:read|heard|thought|believe|guess|understood|was told)|it (?:was|did|does|doesn'?t|didn'?t|seems|looks|fails?)|maybe|perhaps|what|why|how|where|which|when|if i)\b|` +
		`\b(?:i|there|it) must\b|\bmust \w+(?: \w+){0,3} (?:when|if|once) (?:it|the|they)\b|\bi(?:'d| would) (?:also )?like to (?:go|see|find|visit|book|have)\b|\blooking for\b|\bfind me\b|\b(?:that|which|it|this) (?:should|must|can) (?:never|not) (?:ever )?(?:happen|occur)\b|\b(?:right now|right away|at the moment|yet|never mind|don'?t bother|don'?t worry)\b|^no\b\W*i\b|^no\b.*\b(?:that|this|it|anything)(?: one)?\b`)
)

// isStanding reports whether a demand holds until the user says otherwise.
func isStanding(s string) bool {
	switch {
	case foreignConstraints.matches(notForeign().ReplaceAllString(s, "")), forbids(s):
		return true
	case !constraintWords.matches(s) && !preferring().MatchString(s) || momentary().MatchString(s):
		return false
	case preferring().MatchString(s) && !pointing().MatchString(s) && !fleeting().MatchString(s) && !strings.ContainsFunc(s, unicode.IsDigit) && !particular().MatchString(s):
		return true
	}
	return (len(s) >= minStanding || brief().MatchString(s) && !pointing().MatchString(s)) && (imperative().MatchString(s) || rule().MatchString(s))
}

// forbids reports whether a clause of a sentence has the form of a rule of the user, and names what it is about.
func forbids(s string) bool {
	if deciding().MatchString(s) {
		return true
	}
	first := true
	for x := range strings.FieldsFuncSeq(clauseMark().ReplaceAllString(s, "\n"), prose.IsLineBreak) {
		said := courtesy().ReplaceAllString(x, "")
		switch {
		case personal().MatchString(said):
			return true
		case momentary().MatchString(said) || fleeting().MatchString(said) || pointing().MatchString(sharedNoun().ReplaceAllString(said, "")):
		case limiting().MatchString(said) || banning().MatchString(said) && (first || !altering().MatchString(said)) && !strings.ContainsFunc(said, unicode.IsDigit) && !particular().MatchString(s):
			return true
		case refusing().MatchString(said) && !reporting().MatchString(said) && (pleading().MatchString(x) || strings.HasSuffix(x, "!")):
			return true
		}
		first = false
	}
	return false
}

var (
	// clauseMark is between the clauses of a sentence, courtesy begins one that demands something.
	clauseMark = text.Pattern(`[,;:.–—(] | [-–—] | (?:but|aber|mais|pero) `)
	courtesy   = text.Pattern(`(?i)^\W*(?:(?:please|pls|also|and|so|but|then|just|ok|okay|yes|oh|btw|note|remember|important|again|und|aber|bitte|et|mais|surtout|y|pero|por favor|s['’]il (?:te|vous) pla[iî]t)\b[,.!:]* +)+`)
	// deciding is in a sentence that is a rule by its own words, or by which the user decides first.
	deciding = text.Pattern(`(?i)^\W*(?:(?:and|also|one|a|my|the|house|general|golden|another|new|important)\b[, ]*)*rules?(?: (?:for|from) (?:always|now on|everything|all(?: of)?|this \w+|the \w+))?: .{10}|` +
		`\b(?:do not|don['’]?t|never|nothing)\b.*\b(?:until|unless|before) i (?:say|tell|confirm|approve|agree|ask)\b|\bi (?:want|need|have|['’]?d like|would like) to (?:\w+ )?(?:read|see|review|check|approve|confirm)\b.*\bbefore you \w|` +
		`\b(?:stop|ask(?: me)?|check with me|show me) (?:first,? )?before (?:you )?(?:pay|send|buy|book|push|commit|merg|delet|deploy|publish|post|releas|order)|\b(?:never|not|nothing)\b.*\bwithout (?:asking me|my (?:ok(?:ay)?|approval|consent|permission))\b|` +
		`\bi(?:['’]ll| will)? (?:push|commit|merge|deploy|publish)(?: \w+){0,2} myself\b|\b(?:my name is|i['’]?m|i am) (?-i:\p{Lu})[^,]+, (?:(?:but|so|please|just) )*call me (?-i:\p{Lu})\S*$`)
	// banning begins a clause that forbids something, limiting one that sets a limit or a manner.
	banning = text.Pattern(`(?i)^(?:(?:do not|don['’]?t) (?:ever )?(?:use|add|commit|push|mention|include|introduce|touch|change|modify|edit|remove|delete|drop|rename|restart|deploy|publish|merge|bump|upgrade|install|spawn|call|phone|contact|book|order|buy|offer|suggest|recommend|propose|give me|move) \w|(?-i:(?:[Dd]o NOT|D(?:O NOT|ON['’]?T)|NEVER) \p{L})|` +
		`never [a-z]|no (?:unsafe|hard-?coded|inline|global) [a-z]+|no (?:new|further|extra|additional|external|third[- ]party|unnecessary) (?:\w+ )?(?:dependenc|librar|package|module|framework|tool|service|cost|fee)|(?:n['’]|ne )\p{L}{4,}(?:e|es|ez) (?:pas|plus|jamais|rien) |(?:(?:nutz|benutz|verwend|schreib|installier|ruf|änder|lösch|schick|empfiehl)\p{L}*|füge?)(?: (?:sie|mir|mich|bitte|dafür))* (?:keine?[nrms]?|nichts?|nie) |` +
		`no (?:(?:me|le|lo|la|los|las|nos) )?(?:uses|toques|cambies|llames|recomiendes|envíes|incluyas|borres|escribas|menciones|añadas|mandes|reserves|instales|quiero (?:hablar|usar|que|ning[uú]n)) )`)
	limiting = text.Pattern(`(?i)^(?:(?:max(?:imum|imal|imo)?|at most|no more than|not more than|höchstens|máximo)\.? [€$£]?\d[\d.,]* ?[\p{L}€$£%]|(?:(?:my|our|the|total) )*budget(?: (?:for|is|of|in) (?:\w+ ){0,3}?| )(?:is )?[€$£]?\d|` +
		`only (?:reply|answer|respond|cite|quote|read|touch)\b|(?:drafts?|commits?|plan|suggestions?) only$|(?:put|write|store|save)\b.* only\W*$|(?:use|commit|run|ask|tell me|write|put|test|report)\b.*\b(?:everywhere|(?:after|before) (?:each|every)\b)|\S+(?: \S+)? always (?:in|with|without|as|by) |` +
		`(?:answer|reply|respond|comments?|docs?|commit messages?|talk|speak)(?: (?:to me|me|always|only))* in (?:\w+ )?(?:english|german|french|spanish|italian|portuguese|japanese|chinese|korean)\b|use (?:british|american) (?:spelling|english)\b|due (?:on|by|before) [\w]|(?:the )?deadline is \w|(?:siez|duz)\p{L}* (?:sie )?(?:mich|uns)\b|tutéame\b)`)
	// altering begins a clause that tells behind another one how to do a thing, by what else is not to be changed.
	altering = text.Pattern(`(?i)^(?:do not|don['’]?t) (?:change|modify|edit|move|remove|rename)\b`)
	// refusing begins a clause that does so if it is a request, unless reporting does.
	refusing  = text.Pattern(`(?i)^(?:no|kein(?:e[nrms]?)?|nicht|pas d(?:e |['’])) ?[\p{L}-]{3,}`)
	reporting = text.Pattern(`(?i)^(?:no (?:new|thanks?|thank|problems?|worr(?:y|ies)|wait|need|rush|idea|way|luck|doubt|matter|one|more|longer|changes?|difference|issues?|errors?|warnings?|failures?|reason|clue|hurry|stress|big|good|outputs?|results?|responses?|repl(?:y|ies)|answers?|match(?:es)?|success|effect|internet|connection|access|permissions?|data|sound|signal|updates?|progress|diff|tests? (?:found|ran)|files? found|dice|joy|kidding|pressure|sweat|not|sorry|you|she|they|use|the|make|but|and|keep|let['’]?s|don['’]?t|please|just)|kein(?:e[nrms]?)? (?:Ahnung|Problem|Sorge|Zeit|Lust|Thema|Stress|Frage|Wunder|Eile|Änderung|Fehler|Geld|Antwort|Ergebnis|Erfolg|Treffer|Ausgabe|Reaktion|Unterschied|Scherz|Internet|Zugriff|Empfang|Strom)\p{L}*|nicht (?:jetzt|heute|so|ganz|mehr|schlecht|nur|das)|pas de (?:problème|souci|quoi))\b`)
	// personal begins a clause about what the user, or one of those it is for, does not take.
	personal = text.Pattern(`(?i)^(?:i (?:(?:really|absolutely|just) )?(?:(?:hate|can(?:no|['’]?)t stand) \p{L}+(?:ing|s)?\W*$|(?:don['’]?t|do not|can(?:no|['’]?)t) (?:eat|drink|smoke) [a-z])|i(?:['’]m| am) (?:a )?(?:vegan|vegetarian|coeliac|celiac|lactose)|(?:i|we|he|she|\p{Lu}\p{Ll}+|my \w+)(?:['’]m|['’]s| am| is| has| have)(?: an?)?(?: \p{L}+)? allerg|` +
		`je ne (?:mange|bois|supporte|fume) (?:pas|plus|jamais) |je suis (?:allergique|végétari|végan)|ich (?:hasse|esse|mag|trinke|vertrage) (?:kein|nie)|ich hasse \p{L}|ich bin (?:allergi|vegan|vegetari)|soy (?:alérgic|vegetarian|celíac|vegan)|no como \p{L})`)
	// fleeting is in a demand of the present, or in a report that begins like one; sharedNoun is known without what was said before.
	fleeting = text.Pattern(`(?i)\b(?:for now|this time|tonight|today|anything|jetzt|heute|ahora|hoy)\b|^never (?:mind|again|ever|seen|saw|had|heard|got|been|was|were|did|came|went|made|found|knew|thought|felt|took|\w*[^e]ed)\b`)
	// pleading is in a clause of refusing that is a request.
	pleading   = text.Pattern(`(?i)\b(?:please|pls|bitte|s['’]il (?:te|vous)|svp|por favor)\b|^kein\p{Ll}* \p{Lu}\p{Ll}+ (?:im|in|nach|vor|für|bei) `)
	sharedNoun = text.Pattern(`(?i)\b(?:this|that) (?:project|repo(?:sitory)?|code ?base|app|package|conversation|chat|session|trip)\b|\b(?:\w+s|anything|everything|those) that\b`)
	// notForeign has a word of a demand in another meaning: who owes what, what the user has to do, what is still so.
	notForeign = text.Pattern(`(?i)\b(?:(?:me|te|le|nos|les|mi|ti|gli) de[bv]e[ns]?|debe[ns]? (?:el|la|los|las|un|una|\d)|(?:il|elle) (?:me|te|lui|nous) doit|noch immer|immer (?:noch|wieder)|ich muss|muss ich|wir müssen|müssen wir|je dois|on doit)\b`)
)

// isDemand reports whether a sentence has the words of a demand.
func isDemand(s string) bool {
	return constraintWords.matches(s) || foreignConstraints.matches(s) || preferring().MatchString(s)
}

// addConstraint adds a demand that holds, unless it is one.
func (s *history) addConstraint(x string) {
	if !slices.ContainsFunc(s.constraints, func(c string) bool { return strings.EqualFold(strings.TrimRight(c, ".!"), strings.TrimRight(x, ".!")) }) {
		s.constraints = appendNew(s.constraints, x)
	}
}

// maxRules is the number of rules that are taken from a document.
const maxRules = 8

// readRules adds the rules that a document of the user lists, or a plan that it passes on to be carried out, and returns
// them. They replace those of a document with the same title.
func (s *history) readRules(message string) []string {
	document := carryingOut().ReplaceAllString(message, "")
	if document == message && !isDocument(message) {
		return nil
	}
	title, _, _ := strings.Cut(message, "\n")
	for _, t := range s.turns {
		if t.document && strings.HasPrefix(t.request.head, title+"\n") {
			s.constraints = slices.DeleteFunc(s.constraints, func(c string) bool { return strings.Contains(t.request.head, c) })
		}
	}
	listed := listedBelow(rulesHeading(), document)
	var rules []string
	for _, l := range prose.SplitLines(document) { // in the words of the user
		if x := bulleted().ReplaceAllString(opening().ReplaceAllString(l, ""), ""); len(rules) < maxRules && !text.Longer(x, maxLine) && slices.Contains(listed, strings.ReplaceAll(x, "**", "")) {
			s.addConstraint(x)
			rules = append(rules, x)
		}
	}
	return rules
}

var (
	// carryingOut begins a message with a plan that the agent is to carry out, rulesHeading stands above rules that hold
	// beyond it, verifying above how a plan is verified.
	carryingOut  = text.Pattern(`(?i)^\W*(?:please )?(?:implement|execute|carry out|follow) (?:the following|this) (?:plan|specification|spec)\b[^\n]*\n+`)
	rulesHeading = text.Pattern(`(?i)^[#* \d.]*(?:(?:user|key|important|hard|ground|coding|project|my|the|general) +)*(?:preferences|rules|constraints|conventions|guidelines|constraints (?:&|and) preferences|constraints (?:&|and) rules)[:* ]*$`)
	verifying    = text.Pattern(`(?im)^#{2,4} +(?:\d+[.)] *)?verification\b.*$`)
)

// verification returns the first command by which a plan says that it is verified, "" for none.
func verification(plan string) string {
	at := verifying().FindStringIndex(plan)
	if at == nil {
		return ""
	}
	fenced := false
	for _, l := range prose.SplitLines(text.Head(plan[at[1]:], maxLine)) {
		switch {
		case strings.HasPrefix(l, codeFence):
			fenced = true
		case fenced, prose.IsListed(l) && strings.Contains(l, "`"):
			return prose.Truncate(opening().ReplaceAllString(prose.Unmarked(l), ""), maxLine)
		case strings.HasPrefix(l, "#"):
			return ""
		}
	}
	return ""
}

// isAbout reports whether a text has most of the words of a demand that say what it is about.
func isAbout(demand, said string) bool {
	said = strings.ToLower(said)
	has, all := 0, 0
	for w := range strings.FieldsFuncSeq(strings.ToLower(demand), func(r rune) bool { return !prose.IsLetterOrDigit(r) && r != '\'' }) {
		if len(w) < minSharedWord || identifier.IsStopWord(w) || identifier.IsEmptyLabel(w) || constraintWords.matches(w) {
			continue
		}
		if all++; prose.ContainsWord(said, w) {
			has++
		}
	}
	return has > 0 && has >= all-all/3
}
