package summary

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

var (
	// agrees matches sentences of the user that approve something. For \b, letters
	// other than those of ASCII are none.
	agrees = text.Pattern(`(?i)\b(?:approv\w*|confirm\w*|authori[sz]\w*|permit\w*|permission|allow\w*|consent\w*|accept\w*|do (?:so|this)|you (?:may|can)|(?:sounds|looks) (?:right|reasonable|sensible)|let['’]?s (?:do|try|go)|make it so|have at it|` + strings.ReplaceAll(assents, ",", "|") + `|` +
		`darfst|dürfen|pouvez|peux|puedes|podéis|puede|podes|pode|puoi|mag|możesz|můžeš|můžete|ano|igen|rendben|kyllä|joo|evet|tamam|oke|okej|boleh|silakan|setuju|ya|da|dobro|visst|vâng|` +
		`ja|jawohl|genau|passt|mach das|einverstanden|genehmigt|erlaubt|oui|d['’]accord|pas de (?:problème|souci)s?|(?:sin|sem|nessun|geen) probl\w+|si|vale|claro|sim|va bene|certo|tak|dale|adelante|vas-y|allez-y)(?:\b|$)|` +
		`(?:^|[^\pL\pN])(?:\+1|sí|sì|конечно|áno|jasně|hyvä|có|đồng ý|да|хорошо|давай|ладно|так|можешь|можете|добре|ναι|εντάξει|כן|אישור|בסדר|بله|باشه|हाँ|ठीक)(?:[^\pL\pN]|$)|👍|好|可以|同意|批准|确认|確認|是的|没问题|はい|承認|お願い|네|نعم|ใช่|ตกลง|ได้เลย|問題(?:ない|ありません)|문제\s*없|^\W*(?:k+|y|aye|go|cool)\W*(?:$|,)`)
	// refuses matches sentences that do not.
	refuses = text.Pattern(`(?i)(?:^|[^\pL\pN_])(?:no|not|never|nothing|nobody|nichts|rien|niente|ничего|don['’]?t|do not|cannot|can['’]?t|stop|wait|hold\s+o(?:n|ff)|refrain|avoid|without|neither|nor|unless|nein|nicht|kein\w*|non|n[ãa]o|jamais|nunca|niet|inte|ikke|nie|ne|nem|tidak|jangan|nu|không|hayır|не|нет|ні|όχι|μην|לא|אל|نه|لا|नहीं|मत)(?:[^\pL\pN_]|$)|n['’]t\b|不|没|(?:^|[^级級特分类類区區个個差性识識])[别別]|勿|ไม่|อย่า`)
	// declines matches the beginning of an answer that is no.
	declines = text.Pattern(`(?i)^\W*(?:(?:and|but|so|well|sorry|then)\W+)?(?:no|nope|nah|nein|non|nee|nej|nie|ne|não|нет|ні|όχι)(?:[\s,.!;:—–-]|$)|^(?:いいえ|不[，。,]|不$|아니)`)
	// toAll matches an answer that approves all.
	toAll = text.Pattern(`(?i)\bto\s+(?:all|both|everything)\b`)
	// bansMore matches the beginning of a sentence that rules out something beside what was asked.
	bansMore = text.Pattern(`(?i)^\W*(?:no|keine?n?|pas\s+de|nessun\w*)\s+\w`)
	// myself matches the beginning of a sentence about what the user does.
	myself = text.Pattern(`(?i)^\W*(?:and\s+|then\s+)?i(?:['’]ll|\s+will|\s+do)?\s+(\w+)`)
	// wonders matches questions that ask for nothing to be done.
	wonders = text.Pattern(`(?i)^\W*(?:(?:hi|hello|hey|so|and|also|then|well|thanks|now|sorry|but)\b\W*){0,3}(?:what|why|how|where|which|who|should|shall|is|are|was|were|do|does|did|has|have|(?:can|could|may|might|would|will)\s+(?:i|we|it|this|that|there|one))\s[^?]*\?\s*$`)
)

// statement is what a sentence of the user says without what it refuses.
type statement struct {
	stems string // of the sentence
	// about are the stems of the question that the sentence answers, agrees reports whether
	// it approves something, limited that it approves only a part of it, beside are the stems of
	// what the message with the question tells of it.
	about, beside   string
	agrees, limited bool
	// tells: of what was or of what the user does, own, which asks for nothing; voids: what was ruled before.
	tells, own, voids bool
	// gives: a value that the question asks for, which approves nothing.
	gives bool
}

// maxValue is how many words an answer has that is nothing but a value.
const maxValue = 6

// maxStatements is how many bytes of statements are kept.
const maxStatements = 1 << 20

// maxStated is how many bytes of one message are searched for statements.
const maxStated = 1 << 15

// addApprovals indexes what the prose of an updated summary tells, and the approvals in it, which
// were checked when it was written.
func (e *SourceIndex) addApprovals(prose string) {
	for line := range strings.Lines(prose) {
		for _, sentence := range sentencesOf(line) {
			e.addStatement(statement{stems: stemsOf(sentence), tells: true})
			for _, pattern := range claimPatterns() {
				folded, _ := e.foldFor(pattern, sentence)
				for _, of := range e.approvalsIn(pattern, folded) {
					e.statements = append(e.statements, statement{stems: stemsOf(of.what), agrees: !of.voids, voids: true})
				}
			}
		}
	}
}

// shortAnswerOfUser is the size, in bytes, below which a message may answer a question.
const shortAnswerOfUser = 400

// addStatements indexes the sentences of a message of the user, which answers a message.
func (e *SourceIndex) addStatements(said string) {
	said = text.Head(said, maxStated)
	answers := len(said) < shortAnswerOfUser
	if answers && e.unread != "" { // most messages of the assistant are not answered
		e.asked, e.unread = questionIn(e.unread), ""
	}
	wanted := statement{} // what the sentences of an answer ask for and agree to together
	sentences := sentencesOf(said)
	var spared stemSet // what this message refuses
	declined, agreed := false, false
	for i, sentence := range sentences {
		kept, refused := partsOf(sentence)
		if !e.keep(len(refused)) {
			return
		}
		sentences[i] = kept
		e.refused.add(refused)
		spared.add(refused)
		e.addBans(sentences[max(0, i-1)], kept, refused)
		agreed = agreed || agrees().MatchString(kept)
		no := strings.TrimSpace(kept) == "" && declines().MatchString(refused) && (!agreed || !bansMore().MatchString(refused))
		if answers && (no || strings.TrimSpace(kept) == "" && postpones().MatchString(refused)) {
			e.refused.add(e.asked.about)
			e.addRefused(e.asked.about, false)
		}
		declined = declined || no
	}
	var open []string
	for w := range strings.FieldsSeq(e.asked.about) {
		if !declined && !spared.has(w) {
			open = append(open, w)
		}
	}
	about := " " + strings.Join(append(open, ""), " ")
	for _, kept := range sentences {
		if strings.TrimSpace(kept) == "" || wonders().MatchString(kept) {
			continue
		}
		s := statement{stems: stemsOf(kept), agrees: agrees().MatchString(kept)}
		if s.agrees {
			s.limited, s.voids = limits().MatchString(kept) && !toAll().MatchString(kept), true
		} else {
			s.own = doesOneself(kept)
			s.tells, s.voids = s.own || tells().MatchString(kept) && !wishes().MatchString(kept), voids().MatchString(kept)
		}
		s.gives = answers && e.asked.value && len(strings.Fields(said)) <= maxValue
		if answers {
			if option, ok := e.asked.chosen(kept); ok {
				s.agrees, s.about = true, option
			} else if repeats := !s.agrees && !s.tells && s.repeats(about, pointing().MatchString(kept)); repeats || s.agrees || s.gives {
				s.agrees, s.limited = s.agrees || repeats, s.limited || repeats
				s.about, s.beside = about, e.asked.beside
			}
		}
		if e.addStatement(s); !s.tells {
			wanted.stems += s.stems
		}
		if s.agrees && s.about != "" {
			wanted.agrees, wanted.limited, wanted.about, wanted.beside = true, wanted.limited || s.limited, s.about, s.beside
		}
	}
	if answers {
		e.addStatement(wanted)
	}
	if declined { // what the user says later agrees to something else
		e.asked = question{}
	}
}

// doesOneself reports whether the user says in a sentence that he does something himself.
func doesOneself(sentence string) bool {
	m := myself().FindStringSubmatch(sentence)
	return m != nil && isDeed(strings.TrimSpace(stemsOf(m[1])))
}

// repeats reports whether a sentence has the words of a question in it, all of some or, if it points
// to the rest, the first.
func (s *statement) repeats(about string, points bool) bool {
	words := strings.Fields(s.stems)
	return len(words) > 1 && among(words, about) || points && len(words) > 0 && among(words[:1], about)
}

// keep reports whether so many bytes more of statements may be kept, and counts them.
func (e *SourceIndex) keep(n int) bool {
	e.statementBytes += n
	return e.statementBytes <= maxStatements
}

func (e *SourceIndex) addStatement(s statement) {
	if e.keep(len(s.stems) + len(s.about) + len(s.beside)) {
		e.statements = append(e.statements, s)
	}
}

var (
	// agreeable matches negations that agree.
	agreeable = text.Pattern(`(?i)\bno\s+(?:problems?|harm|worries|objections?|issues?)\b|\bnot\s+a\s+problem\b|\bwhy\s+not\b|\b(?:no|not)\s+need\s+to\s+(?:ask|confirm|wait|check\s+with)\b|\b(?:(?:don|doesn|didn|wouldn|won)['’]?t|(?:do|does|did|will|would)\s+not)\s+(?:mind|care|worry|object|oppose|hesitate|need\s+to\s+ask|ask\s+me|wait\s+for\s+(?:me|him|her|them|it|any\w+))(?:\s+(?:if|whether))?\b|\b(?:left|leaves?)\s+(?:it|this|that|the\s+\w+(?:\s\w+)?)\s+(?:up\s+)?to\s+(?:us|me|you|the\s+(?:agent|assistant|model))(?:\s+(?:if|whether))?\b|\b(?:i|we)\s+(?:\w+\s+)?(?:don['’]?t|do\s+not)\s+(?:need|have)\s+(?:to|a)\b|\b(?:nothing|not)\s+(?:to\s+say\s+)?against\b|\b(?:(?:would|['’]d)\s+be\s+|is\s+|was\s+)?(?:glad|happy|fine|ok(?:ay)?|grateful|delighted|pleased)\s+(?:if|when)\b|\bneeds?\s+no\s+\w+|\bwithout\s+(?:asking|a\s+question|questions|confirmation|waiting(?:\s+(?:for|until)\s+\w+)?|hesitation|further|my)\b|` +
		`\bnichts\s+dagegen\b|\bkein(?:e|en)?\s+(?:problem|einw[aä]nde?)\b|нет\s+проблем|не\s+против|没问题|沒問題`)
	// postpones matches clauses that put off all that stands in front of them.
	postpones = text.Pattern(`(?i)\b(?:(?:wait|stop|hold\s+(?:on|off)|warte)(?:\W*$|\W+(?:for|until|till|a|one|please|here|now|there|auf|bis)\b)|not\s+(?:yet|now|today|so\s+fast)|(?:noch|jetzt)\s+nicht|pas\s+encore|todavía\s+no|non\s+ancora|nog\s+niet|jeszcze\s+nie)\b|подожди|не\s+сейчас`)
	// thanks matches words that a refusal is polite with.
	thanks = text.Pattern(`(?i)\b(?:thanks?|thank\s+you|sorry|danke|merci|gracias)\b`)
	// spares matches clauses that leave something as it is.
	spares = text.Pattern(`(?i)\b(?:hands\s+off|off[\s-]limits|leave\s+(?:\S+\s+){1,6}(?:alone|untouched|unchanged|as\s+(?:is|it|they))|(?:stays?|remains?)\s+as\s+(?:is|it|they)|bleib\w*(?:\s+(?:so|gleich|unverändert|unberührt))?\s*(?:$|,))`)
	// clauseEnds matches what separates the clauses of a sentence.
	clauseEnds = text.Pattern(`(?i)[,;:()—–，、；]|\s-\s|(?:^|\s)(?:but|except|however|though|aber|jedoch|sondern|mais|sauf|pero|ma|però|mas|maar|ale|lecz|men|mutta|но|а|але|ama|fakat|tapi)\s|但|でも|しかし|지만`)
	// unsure matches what begins a question to others within a sentence.
	unsure = text.Pattern(`(?i)\b(?:whether|ob)\b|\b(?:ask|check|see|know|tell|find\s+out|verify|wonder)\s[^,;.!?]{0,20}?\bif\b`)
	// limits matches words that limit an approval to what is named with them.
	limits = text.Pattern(`(?i)\b(?:only|just|solely|exclusively|provided|as\s+long\s+as|nur|lediglich|seulement|uniquement|solo|sólo|solamente|soltanto|apenas|somente|alleen|tylko|pouze|bara|kun|csak)\b|только|лишь|тільки|只|だけ|のみ|만\s|` +
		`^\W*(?:yes|yeah|yep|ok(?:ay)?|sure|fine|go\s+ahead|ja|oui|sí|sì|si|sim)[\s,]+(?:on|in|for|to|at|with|from|auf|für|bei|im|in|am|pour|sur|dans|en|para|su|per|op|voor)\s`)
	// tells matches sentences about what was, voids what lifts a rule, wishes words that ask for
	// something all the same.
	tells = text.Pattern(`(?i)^\W*(?:\S+\s+){0,6}?(?:was|were|had|did|has\s+been|have\s+been|got)\b|^\W*(?:yesterday|last\s+(?:night|week|month|year|time))\b`)
	voids = text.Pattern(`(?i)\b(?:ignor\w*|disregard|forget|drop|override|bypass|lift(?:ed)?|suspend|void|(?:no|any)\s+longer|any\s?more|skip|vergiss|oublie[rz]?|olvida)\b`)
	// andAlso separates the deeds of a claim.
	andAlso = text.Pattern(`(?i),?\s+(?:and|und|et|y|e)\s+(?:also\s+|then\s+)?|,\s+(?:then\s+)?(?:to\s)`)
	wishes  = text.Pattern(`(?i)\b(?:please|can|may|should|must|could|needs?|wants?|let|have\s+to)\b`)
)

// partsOf returns what a sentence of the user says, up to what it refuses, and the rest.
func partsOf(sentence string) (kept, refused string) {
	if strings.Contains(sentence, "if") || strings.Contains(sentence, "hether") || strings.Contains(sentence, "ob") {
		if m := unsure().FindStringIndex(sentence); m != nil {
			sentence = sentence[:m[0]]
		}
	}
	if !refuses().MatchString(sentence) && !spares().MatchString(sentence) {
		return sentence, ""
	}
	sentence = agreeable().ReplaceAllString(sentence, " ok ")
	from := 0
	for _, m := range append(clauseEnds().FindAllStringIndex(sentence, -1), []int{len(sentence), len(sentence)}) {
		clause := sentence[from:m[0]] + " "
		spared := spares().MatchString(clause)
		if spared || refuses().MatchString(clause) {
			// "but not yet" is about what stands in front of it.
			if postpones().MatchString(clause) || !spared && !hasStems(thanks().ReplaceAllString(refuses().ReplaceAllString(clause, " "), " ")) {
				from = 0
			}
			return sentence[:from], sentence[from:]
		}
		from = m[1]
	}
	return sentence, ""
}

// sentencesOf returns the sentences of a text, with their ends.
func sentencesOf(s string) []string {
	var out []string
	at := 0
	for _, m := range sentenceEnds().FindAllStringIndex(s, -1) {
		out = append(out, s[at:m[1]])
		at = m[1]
	}
	return append(out, s[at:])
}

// approved reports whether a message of the user supports the claim of an approval.
func (e *SourceIndex) approved(of approval) bool {
	if e.backed(of) {
		return true
	}
	parts := andAlso().Split(of.what, -1) // each deed may have a message of its own
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool {
		of.what = part
		return !slices.ContainsFunc(strings.Fields(stemsOf(part)), isDeed) || !e.backed(of)
	})
}

// backed reports whether one message supports all of a claim.
func (e *SourceIndex) backed(of approval) bool {
	want := strings.Fields(stemsOf(of.what))
	return slices.ContainsFunc(e.statements, func(s statement) bool {
		if len(want) == 0 {
			return s.agrees
		}
		return s.backs(of, want, e.refused) && (!s.limited || s.within(of, want))
	})
}

// stemSet holds stems, and behind a sign the heads by which hasStem compares them.
type stemSet map[string]bool

func (e *stemSet) add(s string) {
	if s != "" && *e == nil {
		*e = stemSet{}
	}
	for w := range strings.FieldsSeq(stemsOf(s)) {
		(*e)[w], (*e)["^"+text.Head(w, otherStem)] = true, true
	}
}

// has is as hasStem.
func (e stemSet) has(w string) bool {
	head := text.Head(w, otherStem)
	return e[w] || utf8.RuneCountInString(head) == otherStem && (e[head] || head == w && e["^"+w])
}

// environments are the stems of words for where something is done. A yes about one says nothing of another.
const environments = " produ prod live stag main maste "

// backs reports whether a statement supports a claim, whose stems are wanted. One that was
// refused elsewhere must be named. A value that was asked for supports a claim that it was
// given, and no other.
func (s *statement) backs(of approval, want []string, refused stemSet) bool {
	own, all, objects, details := 0, 0, 0, 0
	for _, w := range want {
		inOwn := hasStem(s.stems, w)
		switch {
		case inOwn || hasStem(s.about, w):
			all++
			if !strings.Contains(allDeeds, " "+w+" ") {
				objects++
			}
		case strings.Contains(environments, " "+w+" "):
			return false
		case hasStem(s.beside, w) && !isDeed(w):
			details++
		case refused.has(w):
			return false
		}
		if inOwn {
			own++
		}
	}
	switch {
	case s.agrees && all > 0 && 2*all >= len(want)-details && (objects > 0 || all == len(want)-details):
		return !otherDeed(want, s.stems+s.about, 2*all == len(want)-details)
	case of.given && s.gives && 2*all >= len(want):
		return true
	}
	return !of.answered && !s.tells && (!of.voids || s.voids) && 3*own >= 2*len(want) && hasStem(s.stems, want[0])
}

// within reports whether a claim, whose stems are wanted, names the part that a limited statement
// approves, or little else than its words and, of a value, those of the question.
func (s *statement) within(of approval, want []string) bool {
	named, known, own := 0, 0, strings.Fields(s.stems)
	for _, w := range own {
		if hasStem(" "+strings.Join(want, " ")+" ", w) {
			named++
		}
	}
	for _, w := range want {
		if hasStem(s.stems+s.about, w) {
			known++
		}
	}
	return named > 0 && 3*named >= 2*len(own) || known == len(want) || of.given && 2*known >= len(want)
}

// among reports whether all of some words are among stems.
func among(words []string, stems string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !hasStem(stems, w) })
}

// hasStem reports whether a stem is among others, in an inflection of at least four letters.
func hasStem(stems, w string) bool {
	head := text.Head(w, otherStem)
	return strings.Contains(stems, " "+w+" ") || utf8.RuneCountInString(head) == otherStem && (strings.Contains(stems, " "+head+" ") || head == w && strings.Contains(stems, " "+w))
}

// deeds are the stems of words for what may be done, those of one kind on a line. Those on the
// first line may stand for others.
var deeds = [...]string{
	" chang modif edit updat adjus alter fix make add creat write imple set ",
	" delet remov drop rid erase erasu eras wipe wip purge purg destr trunc uninst disca losc losch gelos entfe suppr effac elimi borra borre apaga apagu удал видал usun smaz ",
	" send sent forwa mail email share publi uploa post ship ",
	" merge merg ", " push ", " deplo relea roll ", " resta reboo neust neuge reini redem riavv перез ", " renam move ", " read look list show view ", " pay buy order book refun ", " answe reply ",
	" cance abort ", " retur ", " excha swap ",
}

// allDeeds are the deeds of all kinds.
var allDeeds = strings.Join(deeds[:], "")

// otherDeed reports whether a claim is about another deed than the ones that are known. One
// that is only half known must name a known one.
func otherDeed(want []string, known string, half bool) bool {
	has := func(kind string) bool {
		return slices.ContainsFunc(strings.Fields(kind), func(w string) bool { return strings.Contains(known, " "+w+" ") })
	}
	for _, w := range want {
		for i, kind := range deeds {
			if strings.Contains(kind, " "+w+" ") {
				return i > 0 && !has(kind) && (half || slices.ContainsFunc(deeds[:], has))
			}
		}
	}
	return false
}

// stemSize is the number of letters by which words are compared, otherStem that of words of
// other letters than ASCII, which have more endings.
const stemSize, otherStem = 5, 4

// common are words that say nothing about what is meant.
const common = " done once that this with from into have been were will would should could their there then than them they what when which while about after before other some such only also just user human owner approval approved approve confirmed confirm authorized authorised agreed permission allowed explicit explicitly given granted message said says asked please bitte favor plaît prego пожалуйста para una como the and for was are has had its his her our you your but not may can via now out does did don doesn didn assistant agent shall yet yes yeah okay sure fine though aber nur mais seulement pero solo oui però der die das den dem des ein eine hat haben ist wird von vom auf mit und les une des del los las que por dans pour sur het een van dat heeft "

// particles are the words of two letters that say nothing about what is meant.
const particles = " ad ag ai al am an as at au be bo by ce ci co da de di do du eh el em en er es et eu ex go ha he hi if il im in io is it ja je ji jo ka ko la le lo ma me mi mo mu my na ne ni no nu od of ok on or os ou pa po qu re sa se si so su ta te ti to tu um un up us va ve vi vs we wo ya ye yo za ze zu ll ve re dt nt "

// stemsOf returns the beginnings of the words of a text that say what it is about, between
// blanks. In scripts without blanks, and in Korean, these are pairs of letters.
func stemsOf(s string) string {
	var b strings.Builder
	for w := range strings.FieldsSeq(wordsOf(s)) {
		if len(w) < 2 || len(w) == 2 && (isDigit(w[0]) && isDigit(w[1]) || strings.Contains(particles, " "+w+" ")) || len(w) > 2 && utf8.RuneCountInString(w) < 3 && unspacedLetters(w) == 0 && !strings.ContainsFunc(w, isHangul) || strings.Contains(common, " "+w+" ") {
			continue
		}
		switch {
		case unspacedLetters(w) > 0:
		case strings.ContainsFunc(w, isHangul):
			w = withoutParticle(w)
		default:
			size := stemSize
			w = withoutEnding(w)
			if strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf }) {
				size = otherStem
			}
			w, _ = text.Fold(text.Head(w, size)) // accents change in inflections
			b.WriteString(" " + w)
			continue
		}
		if utf8.RuneCountInString(w) == 1 && b.Len() == 0 {
			b.WriteString(" " + w)
		}
		last := rune(0)
		for _, r := range w {
			if last != 0 && !unicode.In(r, unicode.Hiragana) && !unicode.In(last, unicode.Hiragana) {
				b.WriteString(" " + string([]rune{last, r}))
			}
			last = r
		}
	}
	return b.String() + " "
}

// withoutEnding returns an English word without the ending of its form.
func withoutEnding(w string) string {
	for _, ending := range []string{"ing", "ed", "s"} {
		rest, ok := strings.CutSuffix(w, ending)
		if ending == "s" && (strings.HasSuffix(rest, "she") || strings.HasSuffix(rest, "xe")) {
			rest = rest[:len(rest)-1] // pushes
		}
		if !ok || len(rest) < 3 || ending == "s" && strings.HasSuffix(rest, "s") {
			continue
		}
		if n := len(rest); ending != "s" && n > 3 && rest[n-1] == rest[n-2] && strings.IndexByte("bdgmnprt", rest[n-1]) >= 0 {
			rest = rest[:n-1] // dropping
		} else if n == 3 && rest[2] == 'v' {
			rest += "e" // moving
		}
		return rest
	}
	return w
}

func isHangul(r rune) bool { return unicode.Is(unicode.Hangul, r) }

// withoutParticle returns a Korean word without the particle behind it.
func withoutParticle(w string) string {
	last, size := utf8.DecodeLastRuneInString(w)
	if len(w) > size && strings.ContainsRune("을를이가은는의에로과와도만요", last) {
		return w[:len(w)-size]
	}
	return w
}
