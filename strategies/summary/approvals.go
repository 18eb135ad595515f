package summary

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	approving = `approv(?:ed|es|al)|confirm(?:ed|s|ation)|authori[sz](?:ed|es|ation)|agree(?:d|s|ment)|permit(?:ted|s)|permission|allow(?:ed|s)|consent(?:ed|s)?|accept(?:ed|s|ance)|green-?lit|green[\s-]?light(?:ed|s)?|go-?ahead|ok(?:ay)?['’]?(?:ed|d)|sanctioned|cleared|signed[\s-]off|sign-off|waived|endorsed|blessing|vouched`
	person    = `user|human|owner|customer|operator|client`
)

var (
	// approvals matches claims that the user approved something, in both voices.
	approvals = text.Pattern(`(?i)\b(?:` + person + `)(?:['’]s)?\b[\s*_:,–—-]{1,4}(?:(?:has|have|had|already|also|now|then|explicitly|expressly|clearly|verbally|fully|previously|later|finally|just|just\s+now|given|gave|gives|granted|grants|provided|provides|issued|is|was|were|been|full|final|written|explicit|their|his|her|its|the|an?|on|fine\s+with|to|in|chat)\s+){0,8}(?:` + approving + `|fine\s+with|happy\s+with)\b|` +
		`\b(?:` + approving + `|given|granted|obtained|received)\s+(?:(?:\w+)\s+){0,3}(?:by|from|of)\s+(?:the\s+)?(?:` + person + `)\b|\b(?:` + person + `)[\s-](?:approved|confirmed|authori[sz]ed|sanctioned)\b|` +
		`\b(?:with|has|have|had|got|obtained|received|under)\s+(?:the\s+)?(?:\w+\s+)?(?:` + person + `)['’]s\s+(?:\w+\s+)?(?:` + approving + `)\b|` +
		`(?:` + approving + `)\s+(?:(?:was|is|has\s+been|were)\s+)?(?:given|granted|obtained|received)\b|` +
		`\b(?:be)?nutzer(?:in)?\s+(?:\pL+\s+){0,12}?(?:zugestimmt|genehmigt|bestätigt|freigegeben|erlaubt|gebilligt)|\b(?:l['’]utilisateur|el usuario|o usuário|l['’]utente)\s+(?:\pL+\s+){0,4}?(?:approuvé|confirmé|autorisé|accepté|aprobó|aprobado|confirmó|confirmado|autorizó|autorizado|aprovou|autorizou|approvato|confermato|autorizzato)|` +
		`(?:用户|用戶|使用者)[^。！？\n]{0,6}(?:批准|同意|确认|確認|授权|授權|允许|允許)|пользователь\s+(?:\pL+\s+){0,3}(?:одобрил|подтвердил|разрешил|согласился)`)
	// conditional matches what stands in front of a claim that is none, denied what stands
	// within it, and awaited matches a whole claim that is about the future.
	conditional = text.Pattern(`(?i)(?:\b(?:until|unless|if|whether|unclear|without|pending|await\w*|wait\w*|need\w*|requir\w*|request\w*|ask\w*|must|should|may|might|let|no|not|never|nor|neither|before|once|when|seek\w*|want\w*|lacks?|missing|subject\s+to|after\s+explicit)\s+(?:for\s+|on\s+|that\s+|explicit\s+|written\s+|an?\s+|any\s+)*(?:the\s+|a\s+)?)$`)
	past        = text.Pattern(`(?i)(?:ed|lit|gave|given|granted|d)$`)
	wanting     = text.Pattern(`(?i)^[^.!?\n]{0,40}\b(?:pending|required|needed|missing|outstanding|awaited)\b`)
)

// unbacked stands behind a claim of an approval that is in no message.
const unbacked = " (no message of the user says so)"

// markApprovals marks the claims in an answer that the user approved something, unless a
// message of the user does.
func (e *SourceIndex) markApprovals(answer string) string {
	folded, at := text.Fold(answer)
	var spans [][2]int
	var texts []string
	for _, m := range approvals().FindAllStringIndex(folded, -1) {
		rest := folded[m[1]:]
		if strings.HasPrefix(rest, unbacked) || wanting().MatchString(rest) {
			continue
		}
		start := max(0, m[0]-300)
		start += lastEndOf(folded[start:m[0]])
		if c := conditional().FindString(folded[start:m[0]]); c != "" {
			first := strings.ToLower(strings.Fields(c)[0])
			timed := first == "before" || first == "once" || first == "when"
			if !timed || !past().MatchString(folded[m[0]:m[1]]) {
				continue
			}
		}
		end := min(m[1]+400, len(folded))
		if n := strings.IndexAny(folded[m[1]:end], ".!?\n;。！？"); n >= 0 {
			end = m[1] + n
		}
		if !e.approved(folded[start:m[0]] + " " + folded[m[1]:end]) {
			spans, texts = append(spans, [2]int{m[1], m[1]}), append(texts, unbacked)
		}
	}
	return text.ReplaceFolded(answer, at, spans, texts)
}

var (
	// agrees matches sentences of the user that approve something.
	agrees = text.Pattern(`(?i)\b(?:approv\w*|confirm\w*|authori[sz]\w*|agreed?|permit\w*|permission|allow\w*|consent\w*|accept\w*|yes|yep|yeah|yup|ok|okay|sure|go ahead|go for it|do it|do so|please do|proceed|go on|continue|sounds good|looks good|lgtm|ship it|fine|perfect|great|correct|exactly|right|you (?:may|can)|feel free|fine by me|make it so|\+1|👍|` +
		`ja|jawohl|genau|passt|mach das|einverstanden|genehmigt|erlaubt|oui|d['’]accord|sí|si|vale|claro|sim|va bene|certo|да|хорошо|давай|ладно)(?:\b|$)|👍|好|可以|同意|批准|确认|確認|是的|没问题|はい|承認|お願い|네|نعم`)
	// refuses matches sentences that do not.
	refuses = text.Pattern(`(?i)\b(?:no|not|never|don['’]?t|do not|cannot|can['’]?t|stop|wait|avoid|without|neither|nor|unless|nein|nicht|kein\w*|non|jamais|nunca|не|нет)\b|n['’]t\b|不|别|別|勿`)
	// sentenceEnd splits the user's messages.
	sentenceEnd = text.Pattern(`[.!?;。！？；]+(?:\s|$)|\n+|[。！？；]`)
)

// statement is a sentence of the user that refuses nothing.
type statement struct {
	stems string // of the sentence
	// about are the stems of the question that the sentence answers, agrees reports whether
	// it approves something.
	about  string
	agrees bool
}

// maxStatements is how many bytes of statements are kept.
const maxStatements = 1 << 19

// maxStated is how many bytes of one message are searched for statements.
const maxStated = 1 << 15

func tailOf(s string) string { return text.Tail(s, 2000) }

// addApprovals indexes the approvals in the summary that is updated, which were checked when
// it was written.
func (e *SourceIndex) addApprovals(summary string) {
	for line := range strings.Lines(summary) {
		for _, sentence := range sentenceEnd().Split(line, -1) {
			if approvals().MatchString(sentence) && !strings.Contains(sentence, unbacked) {
				e.statements = append(e.statements, statement{stems: stemsOf(sentence), agrees: true})
			}
		}
	}
}

// addStatements indexes the sentences of a message of the user, which answers a message.
func (e *SourceIndex) addStatements(said string) {
	said = text.Head(said, maxStated)
	about := ""
	if len(said) < 400 {
		about = e.asked
	}
	for _, sentence := range sentenceEnd().Split(said, -1) {
		if strings.TrimSpace(sentence) == "" || refuses().MatchString(sentence) {
			continue
		}
		s := statement{stems: stemsOf(sentence), agrees: agrees().MatchString(sentence)}
		if s.agrees {
			s.about = about
		}
		if e.statementBytes += len(s.stems) + len(s.about); e.statementBytes > maxStatements {
			return
		}
		e.statements = append(e.statements, s)
	}
}

// approved reports whether a message of the user supports the claim of an approval of what a
// text says.
func (e *SourceIndex) approved(of string) bool {
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
		case s.agrees && 2*max(own, in(s.about)) >= len(want), 3*own >= 2*len(want):
			return true
		}
	}
	return false
}

// stemSize is the number of letters by which words are compared.
const stemSize = 5

// common are words that say nothing about what is meant.
const common = " that this with from into have been were will would should could their there then than them they what when which while about after before other some such only also just user human owner approval approved approve confirmed confirm authorized authorised agreed permission allowed explicit explicitly given granted message said says asked please the and for was are has had its his her our you your but not may can all any via now out "

// stemsOf returns the beginnings of the words of a text that say what it is about, between
// blanks.
func stemsOf(s string) string {
	var b strings.Builder
	for w := range strings.FieldsSeq(wordsOf(s)) {
		if len(w) < 3 || strings.Contains(common, " "+w+" ") {
			continue
		}
		b.WriteString(" " + text.Head(w, stemSize))
	}
	return b.String() + " "
}
