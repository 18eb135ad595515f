package llmtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// language holds the texts of the server in one language.
type language struct {
	name     string
	letters  []*unicode.RangeTable
	about    string // a sentence about a name from the conversation
	nothing  string // a sentence for a conversation without names
	thinking string
}

// languages returns the languages, which differ in their letters. The first is the default.
func languages() []language {
	return []language{
		{
			"english",
			[]*unicode.RangeTable{unicode.Latin},
			"The work in this part of the conversation was about %s, and it stands as the last turns left it.",
			"The conversation says nothing more about this than its last turns do.", "Let me see what was said.",
		},
		{
			"russian",
			[]*unicode.RangeTable{unicode.Cyrillic},
			"В этой части разговора речь шла о %s, и всё осталось так, как сказано в последних репликах.",
			"Разговор не говорит об этом больше, чем его последние реплики.", "Посмотрим, что было сказано.",
		},
		{
			"japanese",
			[]*unicode.RangeTable{unicode.Hiragana, unicode.Katakana},
			"この会話では%sについて話し、状況は最後のやり取りのままです。",
			"これについて会話は最後のやり取り以上のことを述べていません。", "何が話されたかを見てみましょう。",
		},
		{
			"chinese",
			[]*unicode.RangeTable{unicode.Han},
			"这部分对话讨论了 %s，情况与最后几轮所说的一致。",
			"关于这一点，对话没有比最后几轮更多的内容。", "让我看看说了什么。",
		},
		{
			"korean",
			[]*unicode.RangeTable{unicode.Hangul},
			"이 대화에서는 %s에 대해 이야기했고, 상황은 마지막 대화에서 말한 그대로입니다.",
			"이에 대해 대화는 마지막 내용 이상을 말하지 않습니다.", "무슨 말이 오갔는지 보겠습니다.",
		},
		{
			"arabic",
			[]*unicode.RangeTable{unicode.Arabic},
			"دار هذا الجزء من المحادثة حول %s، وبقي الأمر كما ورد في الردود الأخيرة.",
			"لا تقول المحادثة عن هذا أكثر مما ورد في ردودها الأخيرة.", "لنر ما الذي قيل.",
		},
	}
}

// languageOf returns the language of a text by its letters. A sixth of them suffices for a
// language other than English, as the prompt and code are English.
func languageOf(text string) language {
	all := languages()
	counts := make([]int, len(all))
	letters := 0
	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		for i, l := range all {
			if unicode.IsOneOf(l.letters, r) {
				counts[i]++
				break
			}
		}
	}
	best := 0
	for i := 1; i < len(all); i++ {
		if counts[i]*6 > letters && (best == 0 || counts[i] > counts[best]) {
			best = i
		}
	}
	if all[best].name == "chinese" && counts[2]*10 > counts[best] {
		return all[2] // Japanese uses both
	}
	return all[best]
}

// another returns a language with other letters.
func another(l language) language {
	all := languages()
	if l.name == all[0].name {
		return all[1]
	}
	return all[0]
}

// userTurns returns the user's turns of a prompt, which begin with "[USER]: ", or the whole
// prompt if it has none.
func userTurns(prompt string) string {
	var b strings.Builder
	inside := false
	label := regexp.MustCompile(`^\[([A-Z_]+)[^\]\n]*\]: ?`)
	for line := range strings.Lines(prompt) {
		if m := label.FindStringSubmatch(line); m != nil {
			inside = m[1] == "USER"
			line = line[len(m[0]):]
		}
		if inside {
			b.WriteString(line)
		}
	}
	if strings.TrimSpace(b.String()) == "" {
		return prompt
	}
	return b.String()
}

// sections returns the distinct headings that a prompt requests: those of the instruction
// or, if it has none, the last ones of the conversation's prompt, which may include headings of the
// conversation.
func sections(system, user string) []string {
	const most = 60
	for _, text := range []string{system, user} {
		var found []string
		for line := range strings.Lines(text) {
			title, ok := strings.CutPrefix(strings.TrimSpace(line), "## ")
			if title = strings.TrimSpace(title); ok && title != "" && !slices.Contains(found, title) {
				found = append(found, title)
			}
		}
		if len(found) > 0 {
			return found[max(0, len(found)-most):]
		}
	}
	return nil
}

// names returns the paths and identifiers in a text, in order of their first occurrence.
func names(text string) []string {
	const most = 40
	pattern := regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_-]+)+|[a-z0-9]+(?:_[a-z0-9]+)+`)
	var found []string
	for _, s := range pattern.FindAllString(text, -1) {
		if len(s) <= 60 && !slices.Contains(found, s) {
			if found = append(found, s); len(found) == most {
				break
			}
		}
	}
	return found
}

// summary returns a plausible summary of a prompt in a language: each requested section,
// with a sentence about a name from the conversation.
func summary(system, user string, l language) string {
	about := names(userTurns(user))
	sentence := func(i int) string {
		if len(about) == 0 {
			return l.nothing
		}
		return fmt.Sprintf(l.about, about[i%len(about)])
	}
	titles := sections(system, user)
	if len(titles) == 0 {
		return sentence(0) + " " + sentence(1)
	}
	var b strings.Builder
	for i, title := range titles {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("## " + title + "\n")
		if len(about) < 2 { // so that they differ
			fmt.Fprintf(&b, "%d. ", i+1)
		}
		b.WriteString(sentence(i))
	}
	return b.String()
}
