package summary

import (
	"regexp"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// ownName is a name as people write it.
	ownName = `(?:(?:Prof|Dr|Mr|Mrs|Ms|Herr|Frau|Professor)\.?\s+)*(\p{Lu}[\p{L}'’-]*\p{L}(?:\s\p{Lu}[\p{L}'’-]*\p{L}){0,3})`
	// maxNames is the size of the pattern of names behind which no more is kept.
	maxNames = 1 << 11
)

// introduces matches the words by which the user gives a name, surely or only at the end of a
// clause.
var introduces = text.Pattern(`(?:^|[^\pL])(?i:my\s+(?:full\s+|first\s+)?name(?:['’]s|\s+is|\s*:)|mein\s+name\s+ist|ich\s+hei(?:ß|ss)e|je\s+m['’]appelle|mon\s+nom\s+est|me\s+llamo|mi\s+nombre\s+es|mi\s+chiamo|o?\s*meu\s+nome\s+é|меня\s+зовут|mijn\s+naam\s+is|nazywam\s+się)\s+` + ownName + `|` +
	`(?:^|[^\pL])(?i:i\s+am|i['’]m|ich\s+bin|soy|je\s+suis|sono|sou|ik\s+ben|jestem|(?:hi|hello|hey|good\s+\w+)[\s,.!]+(?:\w+[\s,.!]+)?(?:this\s+is|it['’]s|here\s+is))\s+` + ownName + `\s*(?:$|[,.!;:)\n]|\s(?i:and|from|here|at|my|with|zip|und|aus|et|y)\b)|` +
	`(?:^|\n)(?i:(?:best|kind|warm)?\s*(?:regards|wishes)|cheers|thanks|thank\s+you|(?:viele|liebe|beste)\s+grüße)[,.!]?\s*\n+\s*[-–—]*\s*` + ownName + `\s*$`)

// mentions matches the words by which the user names another person.
var mentions = text.Pattern(`(?:^|[^\pL])(?i:ask(?:ed|ing)?|tell|told|ping|cc|notify|consult|check(?:ed|ing)?\s+with|talk(?:ed|ing)?\s+(?:to|with)|sp(?:eak|oke)\s+(?:to|with)|hear\s+(?:back\s+)?from|wait(?:ing)?\s+for|approval\s+(?:of|by|from)|ok\s+(?:of|by|from)|my\s+(?:boss|manager|colleague|wife|husband|partner))\s+(\p{Lu}\p{Ll}{2,})\b|` +
	`(?:^|[^\pL])(\p{Lu}\p{Ll}{2,})\s+(?:says?|said|thinks|wants|told|asked|approved|agreed|signs\s+off|decides|(?:has\s+)?(?:looked|seen|reviewed|checked|answered|replied|confirmed))\b`)

// noNames are words with a capital letter that are no names of persons.
const noNames = " The This That These Those What Which Who She They You Nobody Everybody Everyone Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October November December "

// addNames keeps the names that the user gives in a message, and those of others, for whom
// a word stands that others are called by.
func (e *SourceIndex) addNames(said string) {
	said = text.Head(said, maxStated)
	for _, m := range mentions().FindAllStringSubmatch(said, -1) {
		if name := m[1] + m[2]; !strings.Contains(noNames, " "+name+" ") && e.addName(regexp.QuoteMeta(name)) {
			if e.people == nil {
				e.people = map[string]bool{}
			}
			e.people[name] = true
		}
	}
	for _, m := range introduces().FindAllStringSubmatch(said, -1) {
		name, _ := text.Fold(m[1] + m[2] + m[3])
		parts := strings.Fields(name)
		pattern := regexp.QuoteMeta(parts[0])
		if rest := parts[1:]; len(rest) > 0 {
			last := regexp.QuoteMeta(rest[len(rest)-1])
			pattern += `(?:(?:\s+[\p{L}.'’-]+){0,2}\s+` + last + `)?|(?:Mr|Mrs|Ms|Dr|Herr|Frau|Mme|Sr)\.?\s+` + last
		}
		e.addName(`(?:the\s+(?:user|customer),?\s+)?\b(?:` + pattern + `)`)
	}
}

// addName adds a pattern to that of the names and reports whether it is new.
func (e *SourceIndex) addName(pattern string) bool {
	if pattern = `\b` + pattern + `\b`; e.names != nil {
		was := e.names.String()
		if strings.Contains("|"+was+"|", "|"+pattern+"|") || len(was) > maxNames {
			return false
		}
		pattern = was + "|" + pattern
	}
	e.names = regexp.MustCompile(pattern)
	return true
}

// withoutNames returns a folded text, as text.Fold returned it, with a word for the user in the
// place of names that the user has given, and one for another person in that of names of others.
func (e *SourceIndex) withoutNames(folded string, at []int) (string, []int) {
	if e.names == nil {
		return folded, at
	}
	found := e.names.FindAllStringIndex(folded, -1)
	if found == nil {
		return folded, at
	}
	original := func(i int) int {
		if at == nil {
			return i
		}
		return at[i]
	}
	var b strings.Builder
	from := make([]int, 0, len(folded)+1)
	done := 0
	for _, m := range append(found, []int{len(folded), len(folded)}) {
		b.WriteString(folded[done:m[0]])
		for ; done < m[0]; done++ {
			from = append(from, original(done))
		}
		if done = m[1]; m[0] < m[1] {
			person := "the user"
			if e.people[folded[m[0]:m[1]]] {
				person = "the owner"
			}
			b.WriteString(person)
			for range person {
				from = append(from, original(m[0]))
			}
		}
	}
	return b.String(), append(from, original(len(folded)))
}
