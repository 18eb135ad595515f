package summary

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// tellingWords are words for what a person says, wants or decides.
	tellingWords = `asks?|asked|request(?:s|ed)?|wants?|wanted|wish(?:es|ed)?|expects?|expected|tells|told|says?|said|states?|stated|repl(?:y|ies|ied)|answer(?:s|ed)?|respon(?:ds?|ded|se)|writes|wrote|messaged|texted|e?mailed|pinged|adds|added|repeat(?:s|ed)|insist(?:s|ed)|(?:pushe[sd]|argue[sd]|call(?:s|ed))\s+for|likes?|hopes?|hoped|urge[sd]?|beg(?:s|ged)|clarif(?:ies|ied)|emphasi[sz]e[sd]|stresse[sd]|preference|opinion|understanding|intent(?:ion)?|expectation|indicate[sd]?|signal+ed|hint(?:s|ed)|implie[sd]|input|demand(?:s|ed)?|instruct(?:s|ed)|instructions?|orders?|ordered|directed|directive|prefer(?:s|red)|decid(?:es|ed)|decision|chose|picked|opted|needs|words?|messages?|verdict|call|position|stance|guidance|let|lets|bat|m[öo]chte|will|w[üu]nscht|verlangt|fordert|sagte?|dit|dice|dijo|disse|diz|detto|schrieb|demand[ée]|veut|souhaite|exige|pidi[óo]|quiere|desea|solicit[óo]u?|pede|pediu|quer|deseja|chiesto|chiede|vuole`
	// riskyDeeds are the stems of further deeds that are hard to undo.
	riskyDeeds = " skip bypas disab force reset rever overw kill cance abort charg refun revok "
)

// risky matches the beginnings of words for all of them.
var risky = strings.Join(strings.Fields(strings.Join(deeds[1:7], "")+riskyDeeds), "|")

var (
	// telling matches words that say what the user, or another person, said or wants.
	telling = text.Pattern(`(?i)(?:\b(?:` + person + `)(?:['’]s)?(?:,[^,.;:\n]{1,40},)?|` + foreignUser + `)\s+(?:[\w'’-]+\s+){0,3}?(?:` + tellingWords + `)\b|\b(?:(?:from|per|via|by|with|quoting|(?:orders?|requests?|wish(?:es)?|instructions?|commands?|demands?)\s+(?:of|from|by))\s+|according\s+to\s+)(?:the\s+)?(?:` + person + `)\b`)
	// wishing matches that the user wants something.
	wishing = text.Pattern(`(?i)(?:^\W*|\bthe\s+)(?:user|human|customer|client|caller|passenger|guest|patient)\s+(?:\w+\s+){0,2}?(?:wants?|wanted|wishes|asked|requested|requests|told|instructed|ordered|demand(?:s|ed)|expects|decided|insists|prefers|urged|needs)\s`)
	// setting matches that the user sets a number.
	setting = text.Pattern(`(?i)\b(?:` + person + `)\s+(?:\w+\s+){0,2}?(?:raised|increased|extended|doubled|lowered|capped|set|changed|moved|bumped|limited)\s[^.!?;\n]{1,60}?\b(?:to|at|by)\s+[$€£]?(\d[\d.,]*\d|\d)`)
	// tellingForeign matches the same in scripts that folding changes.
	tellingForeign = text.Pattern(`(?:用户|用戶)[^。！？\n]{0,20}?(?:要求|请求|請求|希望|想|[说說]|表示|指示|[让讓]|[决決]定|要)|(?:ユーザー?|利用者)[^。！？\n]{0,60}?(?:求め|依頼|頼|望|言|指示|述べ|決め)|(?i:пользовател\p{L}*|клиент\p{L}*)\s[^.!?\n]{0,40}?(?:прос|хоч|хот|вел|сказал|реш|требу|написал|передал)|` +
		`(?:طلب|يريد|قال|أمر|أراد|قرر)\s+المستخدم|المستخدم\s+(?:طلب|يريد|قال|أمر|أراد|قرر)|사용자[^.!?\n]{0,40}?(?:요청|원하|원했|말했|지시|요구)`)
	// foreignPerson matches a word for the user in other languages, foreignForbids words there for what the user forbids or keeps.
	foreignPerson  = text.Pattern(`(?i)` + foreignUser + `|` + foreignCustomer)
	foreignForbids = text.Pattern(`(?i)\?|verb[oi][et]|pro[hií]+b|untersag|ausgeschl|ausgenomm|unber[üu]hrt|unver[äa]nd|unangetast|tabu|bleib|beh[aä]lt|verschon|abgelehnt|lehnt|au(?:ß|ss)en\s+vor|frag|interdi|refus|exclu|intact|conserv|garde|laiss|rechaz|intoc|mant|d[eé]j|recus|viet|rifiut|lasci|verboden|weiger|ongemoeid|zakaz|zabron|odm[oó]w|запре|отказ|остав|не\s+трог|禁止|拒[绝絕否]|保留|금지|거부|ممنوع|يرفض|منع`)
	// acting matches a deed that is hard to undo as a verb, not in the name of a thing.
	acting = text.Pattern(`(?i)(?:^\W*|[:;,→–—-]\s*|\b(?:to|and|or|then|also|just|be|us|me|it|that|should|must|can|may|now|please|zu|de|para|que|with(?:\s+the)?)\s+)(?:force-?)?(?:` + risky + `)|\b(?:` + risky + `)\p{L}*(?:e?d|ing|en|al|ion|t)\b`)
	// deedAtRisk matches the same in any place.
	deedAtRisk = text.Pattern(`(?i)\b(?:force-?)?(?:` + risky + `)`)
	// quotedText matches what other checks judge, with a remark on it.
	quotedText = text.Pattern("\"[^\"\n]*\"(?:\\s*\\((?:[^()\n]|\\([^()\n]*\\))*\\)|\\s*\\[[^\\[\\]\n]*\\])?|“[^”\n]*”|`[^`\n]*`|\\((?:quotation|address|a sentence to)\\s[^()\n]*\\)")
	// asOfUser matches headings and labels below or behind which stands what the user is said to want.
	asOfUser = text.Pattern(`(?i)^[\s>*+#_📌-]*(?:\d+[.)]\s*)?(?:(?:all|the|my|new|latest|last|current|recent|standing|earlier|next|other|open|pending|remaining|explicit|updated|real|actual)\s+){0,2}(?:user(?:['’]s)?\s+(?:(?:latest|last|new|current|recent|earlier|other)\s+)?(?:messages?|requests?|asks?|words|wish(?:es)?|wants|instructions?|orders?|prompts?)|(?:task|(?:objective|request|instruction|order|prompt|directive)s?)(?:\s+(?:from|of|by)\s+the\s+user|\s+\(active\))?|(?:requested|wanted|ordered|asked\s+for)(?:\s+by\s+the\s+user)?|what\s+the\s+user\s+(?:wants?|said|asked(?:\s+for)?)|pinned)[\s*_]*(?:$|[:—–>=-]+[\s*_]*)|^[\s>*+-]*(?:📌|(?:user|human)[*_]*\s+[—–-]+\s)\s*`)
)

// toldInOtherScript reports whether a line tells in a script that the user does not write what the user wants, so
// that no message can back it.
func (e *SourceIndex) toldInOtherScript(line string) bool {
	m := tellingForeign().FindStringIndex(line)
	return m != nil && e.userScripts[scriptOf(firstRune(line[m[0]:]))] == 0 && e.userScripts.total() > 0 && !denied().MatchString(line)
}

// tellsForeign reports whether a sentence tells something of the user in another language than English, and neither
// denies nor forbids it.
func tellsForeign(sentence string) bool {
	return foreignPerson().MatchString(quotedText().ReplaceAllString(sentence, " ")) && !denied().MatchString(sentence) && !foreignDenied().MatchString(sentence) && !foreignForbids().MatchString(sentence)
}

// tellsRefused reports whether a sentence of a line says in another language than English that the user wants or
// allows something which only refusals of the user name.
func (e *SourceIndex) tellsRefused(line string) bool {
	if e.refused == nil || strings.Contains(line, " the ") || !foreignPerson().MatchString(line) { // of English
		return false
	}
	return slices.ContainsFunc(sentencesOf(line), func(sentence string) bool {
		return tellsForeign(sentence) &&
			slices.ContainsFunc(strings.Fields(stemsOf(sentence)), func(w string) bool {
				return e.refused[w] && len(w) >= otherStem && !slices.ContainsFunc(e.statements, func(s statement) bool { return hasStem(s.stems+s.about, w) })
			})
	})
}

// wishesNew reports whether a sentence says that the user wants something of which no message names anything.
func (e *SourceIndex) wishesNew(sentence string) bool {
	m := wishing().FindStringIndex(sentence)
	return m != nil && !quotedText().MatchString(sentence) && !slices.ContainsFunc(strings.Fields(stemsOf(sentence[m[1]:])), func(w string) bool {
		return isDeed(w) && e.refused.has(w) || slices.ContainsFunc(e.statements, func(s statement) bool { return hasStem(s.stems+s.about, w) })
	})
}

// invents reports whether a folded sentence says that the user said or wants something of which no message of the
// user names anything, or what is hard to undo, and no message is about such a deed and one of the things that it
// names, or about most of these. It reads English only.
func (e *SourceIndex) invents(sentence string) bool {
	var m []string
	if strings.ContainsAny(sentence, "0123456789") {
		m = setting().FindStringSubmatch(sentence)
	}
	if m != nil && !e.said(wordsOf(m[1])) && !slices.ContainsFunc(e.statements, func(s statement) bool { return hasStem(s.about+s.beside, wordsOf(m[1])) }) {
		return claimed(sentence) != ""
	}
	wish := e.wishesNew(sentence)
	if e.statementBytes > maxStatements || !wish && !deedAtRisk().MatchString(sentence) || !telling().MatchString(sentence) || !e.said("the") || technical().MatchString(sentence) {
		return false
	}
	sentence = claimed(quotedText().ReplaceAllString(sentence, " "))
	at := telling().FindStringIndex(sentence)
	if at == nil {
		return false
	}
	told := sentence[at[1]:]
	if !hasStems(told) {
		told = sentence[:at[0]]
	}
	want := strings.Fields(stemsOf(told))
	if wish && len(want) > 1 {
		return true
	}
	if !acting().MatchString(told) {
		return false
	}
	var kinds, objects []string
	for _, w := range want {
		switch kind := riskyKind(w); {
		case kind != "":
			kinds = append(kinds, kind)
		case !isDeed(w):
			objects = append(objects, w)
		}
	}
	return kinds != nil && !slices.ContainsFunc(e.statements, func(s statement) bool {
		known, n := s.stems+s.about, 0
		for _, w := range objects {
			if hasStem(known, w) {
				n++
			}
		}
		stems := strings.Fields(known)
		vague := len(objects) == 0 || !slices.ContainsFunc(stems, func(w string) bool { return !isDeed(w) }) // as in "delete it"
		return n > 0 && 2*n >= len(objects) || (n > 0 || vague) && slices.ContainsFunc(stems, func(w string) bool { return strings.Contains(strings.Join(kinds, ""), " "+w+" ") })
	})
}

// riskyKind returns the stems of the kind of a deed that is hard to undo, "" for other words.
func riskyKind(w string) string {
	for _, kind := range append(deeds[1:7:7], riskyDeeds) {
		if strings.Contains(kind, " "+w+" ") {
			return kind
		}
	}
	return ""
}
