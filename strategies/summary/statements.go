package summary

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

var (
	// agrees matches sentences of the user that approve something. For \b, letters
	// other than those of ASCII are none.
	agrees = text.Pattern(`(?i)\b(?:approv\w*|confirm\w*|authori[sz]\w*|agreed?|permit\w*|permission|allow\w*|consent\w*|accept\w*|yes|yep|yeah|yup|ok|okay|sure|go ahead|go for it|do it|do so|please do|proceed|go on|continue|sounds good|looks good|lgtm|ship it|fine|perfect|great|correct|exactly|right|you (?:may|can)|feel free|fine by me|make it so|` +
		`darfst|dürfen|pouvez|peux|puedes|podéis|puede|podes|pode|puoi|mag|możesz|můžeš|můžete|ano|igen|rendben|kyllä|joo|evet|tamam|oke|okej|boleh|silakan|setuju|ya|da|dobro|visst|vâng|` +
		`ja|jawohl|genau|passt|mach das|einverstanden|genehmigt|erlaubt|oui|d['’]accord|si|vale|claro|sim|va bene|certo|tak)(?:\b|$)|` +
		`(?:^|[^\pL\pN])(?:\+1|sí|áno|jasně|hyvä|có|đồng ý|да|хорошо|давай|ладно|так|можешь|можете|добре|ναι|εντάξει|כן|אישור|בסדר|بله|باشه|हाँ|ठीक)(?:[^\pL\pN]|$)|👍|好|可以|同意|批准|确认|確認|是的|没问题|はい|承認|お願い|네|نعم|ใช่|ตกลง|ได้เลย`)
	// refuses matches sentences that do not.
	refuses = text.Pattern(`(?i)(?:^|[^\pL\pN_])(?:no|not|never|don['’]?t|do not|cannot|can['’]?t|stop|wait|avoid|without|neither|nor|unless|nein|nicht|kein\w*|non|jamais|nunca|niet|inte|ikke|nie|ne|nem|tidak|jangan|nu|không|hayır|не|нет|ні|όχι|μην|לא|אל|نه|لا|नहीं|मत)(?:[^\pL\pN_]|$)|n['’]t\b|不|没|别|別|勿|ไม่|อย่า`)
	// wonders matches questions that ask for nothing to be done.
	wonders = text.Pattern(`(?i)^\W*(?:what|why|how|where|which|who|should|shall|is|are|was|were|do|does|did|has|have)\s[^?]*\?\s*$`)
)

// statement is a sentence of the user that refuses nothing.
type statement struct {
	stems string // of the sentence
	// about are the stems of the question that the sentence answers, agrees reports whether
	// it approves something.
	about  string
	agrees bool
	// gives: a value that the question asks for, which approves nothing.
	gives bool
}

// maxValue is how many words an answer has that is nothing but a value.
const maxValue = 6

// asksValue matches a message of the assistant that asks the user for a value.
var asksValue = text.Pattern(`(?i)\b(?:what|which|provide|tell\s+me|give\s+me|enter|need|send\s+me|share)\b`)

// maxStatements is how many bytes of statements are kept.
const maxStatements = 1 << 19

// maxStated is how many bytes of one message are searched for statements.
const maxStated = 1 << 15

func tailOf(s string) string { return text.Tail(s, 2000) }

// addApprovals indexes the approvals that the prose of an updated summary tells of, which were
// checked when it was written.
func (e *SourceIndex) addApprovals(prose string) {
	for line := range strings.Lines(prose) {
		for _, sentence := range sentencesOf(line) {
			folded, _ := text.Fold(sentence)
			e.addApproval(approvals(), folded)
			e.addApproval(foreign(), sentence)
		}
	}
}

func (e *SourceIndex) addApproval(pattern *regexp.Regexp, sentence string) {
	for _, of := range approvalsIn(pattern, sentence) {
		e.statements = append(e.statements, statement{stems: stemsOf(of.what), agrees: true})
	}
}

// addStatements indexes the sentences of a message of the user, which answers a message.
func (e *SourceIndex) addStatements(said string) {
	said = text.Head(said, maxStated)
	about := ""
	if len(said) < 400 {
		about = e.asked
	}
	for _, sentence := range sentencesOf(said) {
		if strings.TrimSpace(sentence) == "" || refuses().MatchString(sentence) || wonders().MatchString(sentence) {
			continue
		}
		s := statement{stems: stemsOf(sentence), agrees: agrees().MatchString(sentence)}
		s.gives = about != "" && e.wantsValue && len(strings.Fields(said)) <= maxValue
		if s.agrees || s.gives {
			s.about = about
		}
		if e.statementBytes += len(s.stems) + len(s.about); e.statementBytes > maxStatements {
			return
		}
		e.statements = append(e.statements, s)
	}
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

// approved reports whether a message of the user supports the claim of an approval of what a
// text says. A value that was asked for supports a claim that it was given, and no other.
func (e *SourceIndex) approved(of string, given bool) bool {
	want := strings.Fields(stemsOf(of))
	for _, s := range e.statements {
		if len(want) == 0 {
			if s.agrees {
				return true
			}
			continue
		}
		in := func(stems string) (n int) {
			for _, w := range want {
				if strings.Contains(stems, " "+w+" ") {
					n++
				}
			}
			return n
		}
		switch own := in(s.stems); {
		case s.agrees && 2*max(own, in(s.about)) >= len(want), 3*own >= 2*len(want), given && s.gives && 2*(own+in(s.about)) >= len(want):
			return true
		}
	}
	return false
}

// stemSize is the number of letters by which words are compared, otherStem that of words of
// other letters than ASCII, which have more endings.
const stemSize, otherStem = 5, 4

// common are words that say nothing about what is meant.
const common = " that this with from into have been were will would should could their there then than them they what when which while about after before other some such only also just user human owner approval approved approve confirmed confirm authorized authorised agreed permission allowed explicit explicitly given granted message said says asked please the and for was are has had its his her our you your but not may can all any via now out der die das den dem des ein eine hat haben ist wird von vom auf mit und les une des del los las que por dans pour sur het een van dat heeft "

// stemsOf returns the beginnings of the words of a text that say what it is about, between
// blanks. In scripts without blanks these are pairs of letters.
func stemsOf(s string) string {
	var b strings.Builder
	for w := range strings.FieldsSeq(wordsOf(s)) {
		if len(w) < 3 || strings.Contains(common, " "+w+" ") {
			continue
		}
		if unspacedLetters(w) == 0 {
			size := stemSize
			if strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf }) {
				size = otherStem
			}
			w, _ = text.Fold(text.Head(w, size)) // accents change in inflections
			b.WriteString(" " + w)
			continue
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
