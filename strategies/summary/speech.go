package summary

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// saying are words of speech, which attribute a quotation behind them to the person who is named;
	// putting are those that no object but words can follow.
	saying = putting + `|say|asks?|asked|told|instructed|ordered|demanded|insist(?:s|ed)|confirmed|commented|reported|mentioned|clarified|declared|requested|added|` +
		`continued|went\s+on|begged|warned|emphasi[sz]ed|stressed|explained|repeated|reminded(?:\s+\w+)?|concluded|complained|objected|suggested|posted|sent|texted|decided|made\s+(?:it\s+)?clear`
	// afterwards are those behind a quotation.
	afterwards = putting + `|asks?|asked|insist(?:s|ed)|add(?:s|ed)|continue[sd]|went\s+on|warn(?:s|ed)|emphasi[sz]e[sd]|stresse[sd]|explain(?:s|ed)|repeat(?:s|ed)|conclude[sd]|complain(?:s|ed)|object(?:s|ed)|demand(?:s|ed)|instruct(?:s|ed)|order(?:s|ed)|comment(?:s|ed)|clarifie[sd]|declare[sd]|remind(?:s|ed)\s+\w+`
	putting    = `said|says|writes?|wrote|typed|stated|replied|answered|responded|noted|remarked|exclaimed|put\s+it`
	// sayings are nouns for what was said.
	sayings = `directive|demand|messages?|requests?|questions?|feedback|corrections?|instructions?|words?|reply|answer|response|comment|prompt|follow-?up|ask|e?-?mail(?:\s+(?:reads?|said))?|note|input|quote|wish|wants|msg|statement|position|preference|opinion|stance|verdict|decision|guidance|take`
	// linking may stand between a word of speech and what was said.
	linking = `(?:<br\s*/?>|[*_\s:,()|—–\\-]|\b(?:was|is|were|are|me|us|that|to|explicitly|then|again|for|also|here|simply|just|exactly|verbatim|literally|the|following|in|this|session|first|last|latest|reads?)\b){0,12}`
	// within is a character that does not end a sentence or a quotation, nor begins a clause of
	// another.
	within = `(?:[^.!?;"“”]|[.!?;][^\s"“”]|;\s+(?:and|then|also|later|he|she|they|who)\b)`
	// things say something and are no person.
	things = `rules?|files?|pages?|logs?|errors?|outputs?|dialogs?|buttons?|compilers?|linters?|tests?|tools?|docs?|documentation|readme|comments?|interfaces?|ui|screens?|labels?|tooltips?|ci|builds?|configs?|polic(?:y|ies)|specs?|scripts?|banners?|titles?|commits?|hooks?|servers?|apis?|systems?|assistant|agent|model`
	// people may be the user, or a person whose words a tool has shown.
	people = `a|answer|boss|manager|admin|customer|client|owner|operator|requester|caller|usr|me|you|u|h`
)

var (
	// attributed matches text before a quotation that attributes it to the user.
	attributed = text.Pattern(`(?i)\b(?:according\s+to|as\s+per|quoting|from|by)\s+(?:the\s+)?user[\s*_,:]*$|` +
		`(?:\b(?:user|human)(?:'s|’s|s)?\b` + within + `{0,90}?\b|\b(?:user|human)_)(?:` + saying + `|` + sayings + `|directed)["'\x60]?` + linking + `=?\s*$|` +
		`\b(?:user|human)(?:['’]s|s['’])\s+(?:\w+\s+){0,2}(?:` + sayings + `|order|command)\s+(?:[\w'’-]+\s+){1,5}(?:was|is|were|are|reads?)[\s*_:,]*$|` +
		`\b(?:user|human)\b` + within + `{0,90}?\b(?:answered|replied|responded)\b[^.!?"“”]{0,30}["“][^"“”]{1,200}["”][\s,]*(?:with|by\s+saying)[\s,:]*$|` +
		`\b(?:` + sayings + `|` + saying + `|verbatim)\s+(?:from|of|by)\s+(?:the\s+)?user\b[^.!?"“”\n]{0,30}[:=]` + linking + `$`)
	// attributedColon matches the same with any text up to a colon.
	attributedColon = text.Pattern(`(?i)\b(?:user|human)(?:'s|’s)?\b[^.!?"“”:]{0,80}\b(?:` + saying + `|message|request|question|instruction|words)\b[^.!?"“”:]{0,60}:[*_\s>|]*$`)
	// attributedLabel matches a label of the user, as in transcripts and in messages in JSON.
	attributedLabel = text.Pattern(`(?i)(?:^|[\s*_(\[{>@"'\x60-])(?:user|human)(?:\s?#?\d{1,4})?["'\x60*_)\]]*\s*(?:\([^()\n]{1,20}\)\s*)?["'\x60]?[:>|](?:[*_\s\x60]|<br\s*/?>)*$|(?:^|\n)[^\pL\n]{0,20}(?:the\s+)?user[*_)\]\x60]*\s*(?:→|[=–—-]+>?|[\])])?\s*$|` +
		`(?:^|[\s,(])(?:message|msg|turn|step)\s*#?\d{1,6},?\s*\(?user\)?\s*:\s*$|(?:👤|🧑|🗣|💬)[\s:*_>–—-]{0,6}(?:user[\s:*_>–—-]{1,6})?$`)
	// attributedAfter matches an attribution behind the quotation.
	attributedAfter = text.Pattern(`(?i)^[*_,\s—–-]*(?:(?:` + afterwards + `)\s+the\s+user\b|(?:as\s+)?the\s+user\s+(?:(?:also|then|later|again|once)\s+)?(?:` + afterwards + `)\b|(?:according\s+to|as\s+per|per)\s+the\s+user\b)|` +
		`^[*_,.\s]*(?:[—–~-]+\s*|[(\[|]\s*)(?:so\s+|thus\s+)?(?:the\s+)?user(?:\s+message\s+#?\d{1,6})?[*_]*(?:[).,;\n\]|]|\s*$)|` +
		`^[*_,\s]*(?:is|was|were|are)\s+(?:what\s+)?the\s+user(?:['’]s\s+(?:\w+\s+){0,2}(?:` + sayings + `)\b|\s+(?:` + putting + `)\b)|` +
		`^[*_,\s]*(?:(?:was|were|is|are)\s+)?(?:came|comes|quoted|taken|said|written|asked|demanded|sent|typed)\s+(?:from|by)\s+the\s+user\b`)
	// attributedForeign matches the word for user in other languages.
	attributedForeign = text.Pattern(`(?i)(?:` + foreignUser + `)[^.!?。！？"“”„«»「」]{0,80}$`)

	// saidBefore and saidAfter match an attribution of a quotation to a person, saidMarked one
	// in front of words in any marks, labelled the label of a person.
	saidBefore = text.Pattern(`(?i)\b(?:` + putting + `|say|asks?|asked|told|insist(?:s|ed)|begged|warned|explained|continued|(?:wants|quoting|verbatim)\s*:)` + linking + `$`)
	saidMarked = text.Pattern(`(?i)\b(?:(?:user|human)(?:['’]s)?\s+(?:\w+\s+)?(?:` + sayings + `)\s*:|(?:` + putting + `|words?(?:\s+(?:were|are|was))?))(?:[*_\s:]|\b(?:that|this|explicitly|again|exactly|verbatim|literally)\b){1,4}$`)
	saidAfter  = text.Pattern(`^[*_,\s—–-]*(?:(?:he|she|they|(?:the|our|my|a)\s+\w+(?:\s\w+)?|[A-Z]\w+)\s+(?:` + afterwards + `)\b|(?:said|says|wrote|writes|added|noted|replied)\s+(?:he|she|they|the\s+\w+|[A-Z]\w+)\b)|^[*_,.\s]*(?:[—–~-]+\s*|[(\[|]\s*)the\s+owner[*_]*(?:[).,;\n\]|]|\s*$)`)
	// near matches a person in the sentence in front of a quotation, shown what a person sees, behind the person.
	near     = text.Pattern(`(?i)\b(?:users?|human|customers?|client|owner|operator|requester|caller|person|boss|manager|admin)(?:[^@.!?"“”\w][^@.!?"“”]{0,60})?$`)
	shown    = text.Pattern(`(?i)→|\b(?:clicks?|clicked|press(?:es|ed)?|sees?|saw|shows?|shown|buttons?|menus?|dialogs?|tooltips?|label\w*|columns?|titled|called|named|fields?|switch|set\s+to|(?:open|select|cho)\w*\s+(?:the|an?|(?:all|every)\s+\w+)\b)`)
	labelled = text.Pattern(`(?i)(?:^|\n)[^\pL\n]{0,20}(?:the\s+)?(?:` + people + `|(?:(?:latest|last|newest|current|original|initial|first)\s+)?(?:request|instruction|prompt|ask))[*_)\]\x60]*\s*[:>|][*_\s]*$`)
	// notTheUser matches words with user in them that are no speaker, or one who is spoken to.
	notTheUser = text.Pattern(`(?i)\buser[\s-]+(?:interface|guide|manual|agent|service|table|model|stor(?:y|ies)|menu|page|profile|settings|docs?|facing|name|id)\b|\b(?:for|to)\s+the\s+user\s+(?:is|was|reads?|says?)\b|\buser\s+(?:is|was|were|gets|got|being|be|will\s+be)\s+(?:then\s+)?(?:asked|told|instructed|warned|reminded|prompted|shown)\b`)
	// aThing matches the subject of a word of speech that is no person.
	aThing = text.Pattern(`(?i)\b(?:` + things + `|it|which|that)\s+(?:\w+\s+)?(?:` + saying + `)` + linking + `$`)
	// anotherSays matches a clause of its own about what a thing says.
	anotherSays = text.Pattern(`(?i)(?:,|\b(?:and|but|while|then))\s+(?:the\s+|an?\s+)?(?:` + things + `)\s+(?:\w+\s+)?(?:` + saying + `)` + linking + `$`)
	// answeredTo and answeredWith match what stands around the words that the user answers.
	answeredTo   = text.Pattern(`(?i)\b(?:answered|replied|responded|responds|answers|asked|questions?|offer|proposal|to|on)[\s,:]*$`)
	answeredWith = text.Pattern(`(?i)^[\s,]*(?:(?:with|by\s+\w+)[\s,:]*|the\s+user\s+(?:` + afterwards + `)[\s,:]*)["“„«]`)
	// foreignPeople matches the words for a customer in other languages in front of a quotation.
	foreignPeople = text.Pattern(`(?i)(?:` + foreignCustomer + `)[^.!?。！？"“”„«»「」]{0,40}$`)
)

// foreignUser and foreignCustomer match who a conversation is with in other languages.
const (
	foreignUser = `\b(?:be)?nutzer(?:in|s|n)?\b|\banwender(?:in|s|n)?\b|\butilisat(?:eur|rice)\b|\busuari[oa]\b|\busuári[oa]\b|\butilizador[a]?\b|\butente\b|\bgebruiker|użytkowni\p{L}*|\bkullanıcı\p{L}*|\banvändaren|\bbruk(?:er|ar)en\b|\bbrugeren\b|` +
		`\bkäyttäjä\p{L}*|\bfelhasználó\p{L}*|\buživatel\p{L}*|\bpoužívateľ\p{L}*|\butilizator\p{L}*|\b[ku]o?risni[kc]\p{L}*|\buporabnik\p{L}*|\bpengguna\b|người dùng|χρήστη\p{L}*|пользовател\p{L}*|користувач\p{L}*|потребител\p{L}*|корисни[кц]\p{L}*|` +
		`用户|用戶|使用者|利用者|ユーザー?|사용자[가는]?|משתמש\p{L}*|کاربر|صارف|المستخدم|مستخدم|उपयोगकर्ता|ব্যবহারকারী|பயனர்|ผู้ใช้`
	foreignCustomer = `\b(?:el|la|un)\s+(?:desarrollador|jefe|ingenier)[oa]?\b|\ble\s+(?:développeur|chef|patron)\b|\bder\s+(?:entwickler|chef)\b|\bo\s+desenvolvedor\b|\blo\s+sviluppatore\b|разработчик\p{L}*|начальник\p{L}*|开发者|開發者|開発者|개발자[가는]?|\bkund(?:e|en|in)\b|\b(?:le|la|du|de\s+la)\s+client[e]?\b|\b(?:el|la|del)\s+cliente\b|\b[oa]\s+cliente\b|\bil\s+cliente\b|\bklient\p{L}*|\bklant\b|клиент\p{L}*|клієнт\p{L}*|客户|客戶|お客様|顧客|고객[이은님]*|العميل|मुवक्किल|ग्राहक|ลูกค้า|khách hàng|müşteri\p{L}*|\bpelanggan\b|πελάτη\p{L}*`
)

// claim says whose words a text is said to be.
type claim int

const (
	ofNobody claim = iota
	ofSomebody
	ofTheUser
)

// claims returns whose words a quotation on a line is said to be, by a word for the user or a name
// that the user has given.
func (e *SourceIndex) claims(q *quotation) claim {
	plain, after := withoutMarks(text.Tail(q.before, 300)), q.after[:min(len(q.after), 80)]
	plain = plain[max(0, len(plain)-240):]
	before, _ := text.Fold(plain) // blanks too
	if q.mark == '`' && codeWord().MatchString("`"+q.text+"`") && !agrees().MatchString(q.text) {
		return ofNobody // a name
	}
	before, _ = e.withoutNames(before, nil)
	before = notTheUser().ReplaceAllString(before, "it has")
	after, _ = text.Fold(after)
	after, _ = e.withoutNames(after, nil)
	if q.markup && (ownMark("("+q.text+")") || !saidMarked().MatchString(before) && !saidAfter().MatchString(after) || len(quotedPhrases(q.text)) == 0) {
		return ofNobody
	}
	if answeredTo().MatchString(before) && answeredWith().MatchString(after) || anotherSays().MatchString(before) {
		return ofSomebody
	}
	if attributedForeign().MatchString(plain) {
		if bare := strings.TrimRight(plain, " *_\t\n"); q.mark == '`' && !strings.HasSuffix(bare, ":") && !strings.HasSuffix(bare, "：") {
			return ofSomebody // code that the user does something with
		}
		return ofTheUser
	}
	if low := strings.ToLower(before); strings.Contains(low, "user") || strings.Contains(low, "human") || len(before) < len(plain) || strings.ContainsAny(plain, "👤🧑🗣💬") {
		if attributed().MatchString(before) || attributedColon().MatchString(before) {
			return ofTheUser
		}
		if attributedLabel().MatchString(before) || attributedLabel().MatchString(plain) {
			// A word behind a label may be the name of an account.
			if strings.ContainsAny(strings.TrimSpace(q.text), " \t\n") || unspacedLetters(q.text) > 0 || agrees().MatchString(q.text) {
				return ofTheUser
			}
			return ofNobody
		}
	}
	switch {
	case strings.Contains(strings.ToLower(after), "user") && attributedAfter().MatchString(after):
		return ofTheUser
	case len(quotedPhrases(q.text)) == 0:
	case !isWeak(q.mark) && !shown().MatchString(near().FindString(before)) && near().MatchString(before),
		saidBefore().MatchString(before) && !aThing().MatchString(before), saidAfter().MatchString(after), labelled().MatchString(before), foreignPeople().MatchString(plain):
		return ofSomebody
	}
	return ofNobody
}

// ownMark reports whether a text begins with a mark of the gate's own.
func ownMark(s string) bool {
	return slices.ContainsFunc([]string{notQuoted, unquoted, notTheirs, unbacked, leftOut, unlinked, modelTitle}, func(mark string) bool {
		return strings.HasPrefix(s, strings.TrimSpace(mark))
	})
}

// withoutMarks returns a text with blanks for the marks of the gate that name the user, who says
// nothing there.
func withoutMarks(s string) string {
	for _, mark := range []string{unbacked, notTheirs} {
		s = strings.ReplaceAll(s, mark, strings.Repeat(" ", len(mark)))
	}
	return s
}
