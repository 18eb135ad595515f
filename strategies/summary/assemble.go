package summary

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// lastUserTitle is a section that earlier versions added; an answer may copy it.
const (
	lastUserTitle = "Last user message"
	verbatimNote  = "(verbatim, from the messages themselves)"
)

// maxAcknowledgement is how many words a message has that says nothing but to go on.
const maxAcknowledgement = 8

// assents are words of agreement, separated by commas, which name no thing to do.
const assents = `ok,okay,yes,yep,yeah,yup,sure,fine,perfect,great,agreed,agree,lgtm,right,correct,exactly,absolutely,definitely,certainly,proceed,continue,alright,all right,go ahead,go on,go for it,do it,do that,please do,ship it,` +
	`sounds good,looks good,sounds great,looks great,sounds fine,looks fine,sounds like a plan,works for me,fine by me,fine with me,good to go,of course,by all means,feel free,be my guest,knock yourself out,thumbs up,` +
	`klar,gerne,natürlich,bien sûr,por supuesto,volentieri`

// acknowledgements are the words of messages that say nothing but to go on.
var acknowledgements = append(strings.FieldsFunc(assents, func(r rune) bool { return r == ',' || r == ' ' }), strings.Fields(`k nice cool awesome excellent thanks thank thx you this so them both next keep going and now then approved
	from where left off we were makes sense let us lets s i t don m d ll the no not nope never mind work far take option number one two first second third last b c as planned proposed suggested carry resume
	ja nein gut danke weiter mach mache das es bitte genau passt einverstanden non oui merci d accord vas y si sí gracias vale claro sigue adelante sim obrigado continua va bene certo grazie
	да ок хорошо давай продолжай спасибо так конечно tak dobrze`)...)

// unspacedAcknowledgement matches those in scripts without blanks, and signs.
var unspacedAcknowledgement = text.Pattern(`^(?:[\s，。,.!！、👍✅🙏👌🚀]|好的?|可以|同意|没问题|是的|继续|请|谢谢|行|不|不用|不要|はい|いいえ|やって(?:ください)?|お願いします|続けて(?:ください)?|了解|ありがとう|네|계속|해주세요|좋아요|감사합니다)+$`)

// acknowledges reports whether a message of the user names no task: it only agrees, declines,
// picks an option or points to what was said, or a program wrote it. The task is then an earlier
// one, which the model names.
func acknowledges(message string) bool {
	if extract.IsGenerated(message) || extract.IsOutput(message) {
		return true
	}
	if unspacedAcknowledgement().MatchString(text.Head(message, 100)) && !text.Longer(message, 100) {
		return true
	}
	words := strings.Fields(wordsOf(message))
	named := 0 // words that are none of an acknowledgement
	for _, w := range words {
		if !slices.Contains(acknowledgements, w) {
			named++
		}
	}
	return len(words) > 0 && len(words) <= maxAcknowledgement && (named == 0 || named == 1 && (choice().MatchString(message) || pointing().MatchString(message)))
}

// InsertRequest replaces the body of the active task in an accepted answer by the user's
// request, verbatim and redacted, with its middle cut out if it is long. An empty request
// replaces nothing. InsertRequest is idempotent.
func InsertRequest(answer, request string) string {
	sections := []Section{{Title: ActiveTask}, {Title: lastUserTitle}}
	given := strings.TrimSpace(request) != ""
	var body strings.Builder
	task := -1 // index of the active task
	answer = text.Trim(answer)
	for _, p := range splitSections(answer, sections) {
		switch {
		case given && sameTitle(p.title, ActiveTask):
			if task < 0 {
				task = body.Len()
			}
		case given && sameTitle(p.title, lastUserTitle):
		default:
			body.WriteString(answer[p.start:p.end])
		}
	}
	rest := closeFence(body.String())
	if task < 0 || task > len(rest) {
		task = len(rest) // no headings
	}
	parts := []string{rest[:task]}
	if given {
		parts = append(parts, verbatim(ActiveTask, request))
	}
	var out []string
	for _, p := range append(parts, rest[task:]) {
		if p = text.Trim(p); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "\n\n")
}

// closeFence closes an open code fence, so that it does not swallow the sections that
// follow.
func closeFence(text string) string {
	fence := openFence(text)
	if fence == "" {
		return text
	}
	return strings.TrimSuffix(text, "\n") + "\n" + fence
}

// verbatim returns a section with each line of s marked as a quotation, so that none reads
// as a heading.
func verbatim(title, s string) string {
	var b strings.Builder
	b.WriteString("## " + title + "\n" + verbatimNote + "\n")
	for line := range strings.SplitSeq(cutCenter(text.Trim(s), maxAsk), "\n") {
		b.WriteString("\n> " + strings.TrimRight(line, "\r"))
	}
	return b.String()
}
