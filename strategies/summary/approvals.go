package summary

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	approving = `approv(?:ed|es|al)|confirm(?:ed|s|ation)|authori[sz](?:ed|es|ation)|agree(?:d|s|ment)|permit(?:ted|s)|permission|allow(?:ed|s)|consent(?:ed|s)?|accept(?:ed|s|ance)|green-?lit|green[\s-]?light(?:ed|s)?|go-?ahead|ok(?:ay)?['’]?(?:ed|d)|sanctioned|cleared|signed[\s-]off|sign-off|waived|endorsed|blessing|vouched`
	person    = `user|human|owner|customer|operator|client|requester`
	agreeing  = `fine\s+with|happy\s+with|ok(?:ay)?\s+with|said\s+yes\s+to|no\s+objections?|thumbs[\s-]?up`
	gap       = `([^.!?;。！？।\n]{0,60}?)`
)

var (
	// approvals matches claims in folded English that the user approved something, in both
	// voices.
	approvals = text.Pattern(`(?i)\b(?:` + person + `)(?:['’]s)?\b(?:\s*\([^()\n]{1,40}\)|,[^,.;\n]{1,60},|\s+at\s+\d{1,2}:\d\d)?[\s*_:,"”\x60–—-]{1,4}(?:(?:not\s+only|since|personally|has|have|had|already|also|now|then|explicitly|expressly|clearly|verbally|fully|previously|later|finally|just|just\s+now|given|gave|gives|granted|grants|provided|provides|raised|issued|is|was|were|been|full|final|written|explicit|their|his|her|its|the|an?|on|to|in|chat)\s+){0,8}(?:` + approving + `|` + agreeing + `)\b|` +
		`\b(?:` + approving + `|given|granted|obtained|received)\s+(?:(?:\w+)\s+){0,3}(?:by|from|of)\s+(?:\w+\s+\()?(?:the\s+)?(?:` + person + `)\b|\b(?:` + person + `)[\s-](?:approved|confirmed|authori[sz]ed|sanctioned)\b|` +
		`\b(?:with|has|have|had|got|obtained|received|under)\s+(?:the\s+)?(?:\w+\s+)?(?:` + person + `)['’]s\s+(?:\w+\s+)?(?:` + approving + `|ok|okay)\b|` +
		`(?:` + approving + `)\s+(?:(?:was|is|has\s+been|were)\s+)?(?:given|granted|obtained|received)\b|` +
		`\bthe\s+(?:` + person + `)s\s+(?:(?:have|had|all|both|explicitly)\s+){0,3}(?:approved|authori[sz]ed|consented)\b|\bthe\s+(?:` + person + `)\s+(?:[\w'’-]+\s+){1,8}and\s+(?:approved|authori[sz]ed|consented)\b|` +
		`\b(?:` + person + `)_approv(?:ed|al)["'\x60]?\s*[:=]\s*(?:true|yes)\b|\b(?:approved|authori[sz]ed)\s*\|\s*(?:` + person + `)\b|\b(?:` + person + `)\s*\|\s*(?:approved|authori[sz]ed)\b`)
	// foreign matches such claims in other languages; groups are what stands within them.
	foreign = text.Pattern(`(?i)\b(?:be)?nutzer(?:in)?\s` + gap + `(?:zugestimmt|genehmigte?|bestätigte?|freigegeben|erlaubte?|gebilligt|grünes\s+licht)|` +
		`\b(?:l['’]utilisat(?:eur|rice)|(?:el|la)\s+usuari[oa]|[oa]\s+usuári[oa]|[oa]\s+utilizador[a]?|l['’]utente)\s` + gap + `(?:approuvé|confirmé|autorisé|accepté|validé|son\s+(?:accord|aval|autorisation)|aprobó|aprobado|confirmó|confirmado|autorizó|autorizado|aceptó|permiso|visto\s+bueno|aprovou|autorizou|confirmou|aceitou|approvato|confermato|autorizzato|acconsentito)|` +
		`\bgebruiker\s` + gap + `(?:goedgekeurd|bevestigd|toegestaan|toestemming)|\banvändaren\s` + gap + `(?:godkän(?:de|t)|bekräfta(?:de|t)|tillåt(?:it)?)|użytkownik` + gap + `(?:zatwierdził|zaakceptował|potwierdził|zgodził|zgodę|pozwolił)|` +
		`kullanıcı` + gap + `(?:onayladı|onay\s+verdi|izin\s+verdi|kabul\s+etti)|người\s+dùng` + gap + `(?:đồng\s+ý|phê\s+duyệt|cho\s+phép|chấp\s+thuận)|` +
		`пользовател(?:ь|ьница|ем)\s` + gap + `(?:одобрил|одобрен|подтвердил|разрешил|согласил|согласие|разрешение)|користувач` + gap + `(?:схвалив|підтвердив|дозволив|погодив)|` +
		`(?:用户|用戶|使用者)` + gap + `(?:批准|同意|确认|確認|授权|授權|允许|允許)|(?:ユーザー?|利用者)[はがも]` + gap + `(?:承認|同意|許可|了承|確認)(?:しました|した|済み)|` +
		`사용자[가는]?\s` + gap + `(?:승인|허락|허가|동의)(?:했|하였)|وافق(?:ت)?\s+المستخدم|المستخدم(?:ة)?\s+(?:قد\s+)?(?:وافق|أذن|سمح)|उपयोगकर्ता\s+ने\s` + gap + `(?:मंजूरी|मंज़ूरी|अनुमति|स्वीकृति)\s+(?:दी|दे)`)
	// denied matches words within a claim that deny it or put it off.
	denied = text.Pattern(`(?i)\b(?:n['’]a|not|nicht|noch|muss|soll|kein\w*|pas|non|no|não|niet|nog|moet|inte|ikke|nie|jeszcze)\b|henüz|chưa|không|(?:^|\s)(?:не|ещё|ще)\s|没|未|不|まだ|아직`)
	// conditional matches what stands in front of a claim that is none, denied what stands
	// within it, and awaited matches a whole claim that is about the future.
	conditional = text.Pattern(`(?i)(?:\b(?:until|unless|if|whether|unclear|without|pending|await\w*|wait\w*|need\w*|requir\w*|request\w*|ask\w*|must|should|may|might|let|no|not|never|nor|neither|before|once|when|seek\w*|want\w*|lacks?|missing|subject\s+to|after\s+explicit)\s+(?:for\s+|on\s+|that\s+|explicit\s+|written\s+|an?\s+|any\s+)*(?:the\s+|a\s+)?)$`)
	past        = text.Pattern(`(?i)(?:ed|lit|gave|given|granted|d)$`)
	wanting     = text.Pattern(`(?i)^[^.!?\n]{0,40}\b(?:pending|required|needed|missing|outstanding|awaited)\b`)
	wantingPast = text.Pattern(`(?i)^[\s*_:–—-]*(?:is\s+|still\s+)*(?:pending|required|needed|missing|outstanding|awaited)\b`)
	// told matches a word in front of a claim that is about the past too.
	told = text.Pattern(`(?i)^(?:before|once|when|(?:ask|request|requir|want|need|await|wait)ed)$`)
)

// unbacked stands behind a claim of an approval that is in no message.
const unbacked = " (no message of the user says so)"

// markApprovals marks the claims in an answer that the user approved something, unless a
// message of the user does.
func (e *SourceIndex) markApprovals(answer string) string {
	folded, at := text.Fold(answer)
	answer = e.markClaims(approvals(), answer, folded, at)
	return e.markClaims(foreign(), answer, answer, nil)
}

// markClaims marks the claims that a pattern matches in an answer, folded as text.Fold does
// or not at all.
func (e *SourceIndex) markClaims(pattern *regexp.Regexp, answer, folded string, at []int) string {
	var spans [][2]int
	var texts []string
	for _, m := range pattern.FindAllStringSubmatchIndex(folded, -1) {
		rest, isPast := folded[m[1]:], past().MatchString(folded[m[0]:m[1]])
		if strings.HasPrefix(rest, unbacked) || wantingPast().MatchString(rest) || !isPast && wanting().MatchString(rest) {
			continue
		}
		start := max(0, m[0]-300)
		start += lastEndOf(folded[start:m[0]])
		if c := conditional().FindString(folded[start:m[0]]); c != "" && (!isPast || !told().MatchString(strings.Fields(c)[0])) {
			continue
		}
		within := " "
		for i := 2; i < len(m); i += 2 { // one of the groups
			if m[i] >= 0 {
				within = " " + folded[m[i]:m[i+1]] + " "
			}
		}
		if denied().MatchString(within) {
			continue
		}
		end := min(m[1]+400, len(folded))
		if n := strings.IndexAny(folded[m[1]:end], ".!?\n;。！？।"); n >= 0 {
			end = m[1] + n
		}
		if !e.approved(folded[start:m[0]] + within + folded[m[1]:end]) {
			spans, texts = append(spans, [2]int{m[1], m[1]}), append(texts, unbacked)
		}
	}
	return text.ReplaceFolded(answer, at, spans, texts)
}

var (
	// agrees matches sentences of the user that approve something.
	agrees = text.Pattern(`(?i)\b(?:approv\w*|confirm\w*|authori[sz]\w*|agreed?|permit\w*|permission|allow\w*|consent\w*|accept\w*|yes|yep|yeah|yup|ok|okay|sure|go ahead|go for it|do it|do so|please do|proceed|go on|continue|sounds good|looks good|lgtm|ship it|fine|perfect|great|correct|exactly|right|you (?:may|can)|feel free|fine by me|make it so|\+1|👍|` +
		`ja|jawohl|genau|passt|mach das|einverstanden|genehmigt|erlaubt|oui|d['’]accord|si|vale|claro|sim|va bene|certo|evet|tak)(?:\b|$)|(?:^|[\s,])(?:sí|да|хорошо|давай|ладно|так)(?:[\s,]|$)|👍|好|可以|同意|批准|确认|確認|是的|没问题|はい|承認|お願い|네|نعم`)
	// refuses matches sentences that do not.
	refuses = text.Pattern(`(?i)\b(?:no|not|never|don['’]?t|do not|cannot|can['’]?t|stop|wait|avoid|without|neither|nor|unless|nein|nicht|kein\w*|non|jamais|nunca|niet|inte|nie)\b|n['’]t\b|(?:^|[\s,])(?:не|нет|ні)(?:[\s,]|$)|不|没|别|別|勿`)
	// wonders matches questions that ask for nothing to be done.
	wonders = text.Pattern(`(?i)^\W*(?:what|why|how|where|which|who|should|shall|is|are|was|were|do|does|did|has|have)\s[^?]*\?\s*$`)
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
		for _, sentence := range sentencesOf(line) {
			if (approvals().MatchString(sentence) || foreign().MatchString(sentence)) && !strings.Contains(sentence, unbacked) {
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
	for _, sentence := range sentencesOf(said) {
		if strings.TrimSpace(sentence) == "" || refuses().MatchString(sentence) || wonders().MatchString(sentence) {
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

// sentencesOf returns the sentences of a text, with their ends.
func sentencesOf(s string) []string {
	var out []string
	at := 0
	for _, m := range sentenceEnd().FindAllStringIndex(s, -1) {
		out = append(out, s[at:m[1]])
		at = m[1]
	}
	return append(out, s[at:])
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

// stemSize is the number of letters by which words are compared, otherStem that of words of
// other letters than ASCII, which have more endings.
const stemSize, otherStem = 5, 4

// common are words that say nothing about what is meant.
const common = " that this with from into have been were will would should could their there then than them they what when which while about after before other some such only also just user human owner approval approved approve confirmed confirm authorized authorised agreed permission allowed explicit explicitly given granted message said says asked please the and for was are has had its his her our you your but not may can all any via now out "

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
			b.WriteString(" " + text.Head(w, size))
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
