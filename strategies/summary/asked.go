package summary

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// question is what a message of the assistant asks the user.
type question struct {
	// about are the stems of what an answer is about, options those of what may be chosen.
	about   string
	options []string
	// beside are the stems of what the message tells beside it, without offers.
	beside string
	// value: it asks for a value.
	value bool
}

var (
	// asking matches the end of a question, asksValue a message that asks the user for a value.
	asking    = text.Pattern(`[?？؟]["'”’)\]*_\s]*$|か[。\s]*$|[吗嗎呢][。\s]*$|까요[.\s]*$`)
	asksValue = text.Pattern(`(?i)\b(?:what|which|provide|tell\s+me|give\s+me|enter|need|send\s+me|share)\b`)
	// proposes matches sentences about what the assistant would do.
	proposes = text.Pattern(`(?i)\b(?:i(?:['’](?:d|ll|m\s+going)|\s+(?:would|will|can|could|may|propose|suggest|recommend|plan|intend|want|am\s+(?:going|about|ready)))|we\s+(?:could|can|should|will)|let\s+me|let['’]s|next|then|plan|proposals?|options?|ready|remain\w*|` +
		`ich\s+(?:würde|werde|kann|könnte|schlage|möchte|will)|würde\s+ich|vorschlag|plan|als\s+nächstes|je\s+(?:propose|peux|vais|pourrais|suggère|voudrais)|puedo|propongo|voy\s+a|podría|posso|proponho|vou|vorrei|potrei|mogę|proponuję|mohu|navrhuji|ik\s+(?:kan|zal|wil|stel))\b|могу|предлагаю|собираюсь|хочу|можу|пропоную|我[会會想]|我?可以|建议|建議|打算|ましょう|ます|겠|제안`)
	// offers matches sentences about what may be chosen.
	offers = text.Pattern(`(?i)\b(?:you|one|could|can|may|might|would|should|or|either|alternative(?:ly)?|possible|instead|another|also)\b`)
	// pointing matches words for what an earlier sentence names.
	pointing = text.Pattern(`(?i)\b(?:it|them|this|that|these|those|so|one|both|das|dies\w*|sie|es|ihn|le|la|les|lo|los|las|ça|cela|eso|isso|het|dat|czy\s+to|je|jej|proceed|continue|go\s+ahead|the\s+plan)\b|его|её|ее|их|это|它|这|這|それ|これ|그것`)
	// further matches that a question adds to what is proposed.
	further = text.Pattern(`(?i)\b(?:also|too|as\s+well|auch|aussi|también|anche|também)\b`)
	// mine matches sentences about what the assistant does itself.
	mine = text.Pattern(`(?i)\b(?:i|we|your|ich|wir|je|nous)\b|我`)
	// relative matches clauses about what a sentence names, which refuse nothing.
	relative = text.Pattern(`(?i)\b(?:that|which|who|whose|where)\s+(?:\w+\s+){0,3}?(?:no|not|never|nobody|none|don['’]t|doesn['’]t|isn['’]t|aren['’]t|can['’]?t|cannot)\b[^,.;]*`)
	// semicolons matches those within a sentence.
	semicolons = text.Pattern(`;(\s+\p{Ll})`)
	// optionMark matches the mark of an option, either what separates two without marks.
	optionMark = text.Pattern(`(?i)(?:^|[\s(*_])(?:option\s+)?([1-9]|[a-d])[.):]+[*_]*\s`)
	either     = text.Pattern(`(?i),?\s+(?:or|oder|ou|o|oppure|of|lub|nebo|eller|или|або|또는)\s+(?:else\s+)?|或者?|还是|または`)
	// choice matches an answer that chooses an option.
	choice = text.Pattern(`(?i)^\W*(?:(?:ok(?:ay)?|yes|please|let['’]?s\s+(?:go\s+with|take|do)|i(?:['’]d|['’]ll)?\s+(?:prefer|take|choose|want|go\s+(?:with|for))|take|go\s+(?:with|for)|use|do)[\s,]+){0,2}(?:the\s+)?` +
		`(?:(?:option|number|variant|choice|plan|no\.?|nr\.?|#)\s*([1-9]|[a-d])\b|([1-9]|[a-d])(?:\W*$|[,.;!)]|\s+please)|(first|second|third|fourth|former|latter|last)(?:\W*$|[,.;!)]|\s+(?:one|option|variant|choice)\b))`)
)

// ordinals are the words for the places of options.
var ordinals = map[string]int{"first": 1, "former": 1, "second": 2, "latter": 2, "third": 3, "fourth": 4}

// minAsked is how many blanks the stems of a question have that says itself what it is about.
const minAsked = 3

// askingEnd returns the end of a message of the assistant, in which questionIn looks.
func askingEnd(said string) string { return text.Tail(said, 2000) }

// questionIn returns what the end of a message of the assistant asks: its questions and what
// they point to, or what it proposes. What it rules out or tells beside that is no part of it.
func questionIn(said string) question {
	q := question{value: asksValue().MatchString(said)}
	var sentences []string
	first, last, from := -1, -1, -1 // the questions and the first proposal
	for _, s := range sentencesOf(semicolons().ReplaceAllString(said, ",$1")) {
		asks, refused := asking().MatchString(s), refuses().MatchString(relative().ReplaceAllString(s, ""))
		switch n := len(sentences); {
		case strings.TrimSpace(s) == "", !asks && refused && (mine().MatchString(s) || proposes().MatchString(s)):
			continue
		case asks, q.value && asksValue().MatchString(s):
			if last = n; first < 0 {
				first = n
			}
		case from < 0 && proposes().MatchString(s):
			from = n
		}
		sentences = append(sentences, s)
	}
	var scope []string
	switch {
	case last < 0 && from >= 0:
		scope = sentences[from:]
	case last >= 0:
		for i, s := range sentences[first:] {
			if asking().MatchString(s) || q.value && asksValue().MatchString(s) || first+i > last && proposes().MatchString(s) {
				scope = append(scope, s)
			}
		}
		asked := strings.Join(scope, " ")
		if first > 0 && (pointing().MatchString(asked) || further().MatchString(asked) || unspacedLetters(asked) > 0 || strings.Count(stemsOf(asked), " ") < minAsked) {
			if from < 0 || from > first {
				from = first - 1
			}
			scope = slices.Concat(sentences[from:first], scope)
		}
	}
	asked := strings.Join(scope, " ")
	q.about, q.options = stemsOf(asked), optionsIn(asked)
	for _, s := range sentences {
		if !asking().MatchString(s) && !offers().MatchString(s) && !proposes().MatchString(s) {
			q.beside += stemsOf(s)
		}
	}
	return q
}

// optionsIn returns the stems of what a question lets choose, in order.
func optionsIn(asked string) []string {
	marks := optionMark().FindAllStringIndex(asked, -1)
	var out []string
	for i, m := range marks {
		end := len(asked)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		out = append(out, stemsOf(firstSentence(asked[m[1]:end])))
	}
	if len(out) > 1 {
		return out
	}
	if m := either().FindStringIndex(asked); m != nil {
		return []string{stemsOf(asked[lastEndOf(asked[:m[0]]):m[0]]), stemsOf(firstSentence(asked[m[1]:]))}
	}
	return nil
}

// firstSentence returns the beginning of a text up to the end of its first sentence.
func firstSentence(s string) string {
	if n := endOfSentence(s); n >= 0 {
		return s[:n]
	}
	return s
}

// chosen returns the stems of the option that an answer names by its number or place, or what is asked with the
// option of which it has the words.
func (q *question) chosen(answer string) (option string, ok bool) {
	m := choice().FindStringSubmatch(answer)
	if m == nil {
		words := strings.Fields(stemsOf(clauseEnds().Split(answer, 2)[0]))
		if len(q.options) != 2 || len(words) == 0 || agrees().MatchString(answer) || strings.TrimSpace(q.options[0]) == "" || strings.TrimSpace(q.options[1]) == "" || among(words, q.options[0]) == among(words, q.options[1]) {
			return "", false
		}
		first, second := strings.Fields(q.options[0]), strings.Fields(q.options[1])
		other := first[len(first)-1] // "use a or b for c"
		if among(words, q.options[0]) {
			other = second[0]
		}
		return strings.Replace(q.about, " "+other+" ", " ", 1), true
	}
	mark := strings.ToLower(m[1] + m[2] + m[3])
	n, known := ordinals[mark]
	switch {
	case mark == "last":
		n = len(q.options)
	case known:
	case isDigit(mark[0]):
		n, _ = strconv.Atoi(mark)
	default:
		n = int(mark[0]-'a') + 1
	}
	if n < 1 || n > len(q.options) {
		return "", false
	}
	return q.options[n-1], true
}
