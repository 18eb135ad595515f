package summary

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Clean returns a text as it may stand in a stored summary, whoever wrote it: without hidden
// characters, and with delimiters of summaries and of roles, active HTML, remote images and
// links that run code made plain. It is idempotent.
func Clean(s string) string {
	s = text.WithoutHidden(s)
	for range maxPasses {
		was := s
		if s = plainLinks(plainTokens(frame.Escape(s))); s == was {
			break
		}
	}
	return s
}

// clean returns an answer of a model as Clean does, and without headings of the program's
// own, turns of a transcript, orders to the reader, links to hosts of no message and
// approvals that no user gave.
func (e *SourceIndex) clean(answer string) string {
	for range maxPasses {
		was := answer
		answer = updated().ReplaceAllString(extract.Escape(plainReferences(answer)), "")
		answer = programNotes().ReplaceAllString(answer, notQuoted+"$1")
		answer = toReader().ReplaceAllString(answer, "${1}"+notQuoted+"$2")
		if answer = e.markListed(e.markApprovals(e.markDuties(e.withoutOrders(e.withoutUnknownLinks(plainTitles(Clean(answer))))))); answer == was {
			break
		}
	}
	return answer
}

// programNotes matches remarks in brackets that say the program wrote or checked them.
var programNotes = text.Pattern(`(?i)[\[(【［{]\s*((?:(?:note|notice|message|remark|comment|verdict|check)\s+(?:of|from|by)\s+(?:the\s+)?(?:` + programs + `)|(?:the\s+)?(?:(?:` + programs + `)\s+(?:note|notice|message|remark|check)|(?:context\s+)?compactor|compaction|program|gate|validator)\s*[:：—–]|` +
	`(?:[\w-]+?[\s-]+){0,3}?(?:checked|verified|validated|confirmed|approved|certified|written|added|inserted|generated|signed)\s+(?:against\s+[\w\s]{1,30}\s)?by\s+(?:the\s+)?(?:` + programs + `)\s*[:：,.;\])—–-])[^\[\]()\n]{0,400})[\])】］}]?`)

// toReader matches labels that turn to the next agent, with the first character behind them.
var toReader = text.Pattern(`(?i)((?:(?m:^)|[.!?]\s)[\s>#*_+-]*(?:(?:to\s+)?(?:the\s+)?next\s+(?:agent|assistant|model)|attention,?\s+(?:agent|assistant|model)s?|dear\s+(?:agent|assistant|model)|note\s+to\s+self|(?:my\s+|the\s+|your\s+)?successors?|dear\s+reader|future\s+(?:agents?|assistants?|self)|(?:to\s+)?whoever\s+(?:continues|resumes|reads|takes|picks)(?:\s+\w+){0,3}|(?:instructions?|orders?|message|note)\s+(?:for|to)\s+(?:(?:the|my|your)\s+)?(?:next\s+)?(?:agent|assistant|model|successors?|whoever\s+\w+))[*_]*\s*[:,—–-][*_]*[ \t]+)([^\s(])`)

const programs = `(?:context\s+|session\s+)?compactor|compaction(?:\s+(?:program|service|gate))?|program|system|gate|validator|host|runtime|platform|harness|orchestrator|summari[sz]er|supervisor`

// references matches references to characters, as HTML and Markdown write them.
var references = text.Pattern(`&(?:#\d{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z]{2,12};)`)

// plainReferences replaces references outside of code to letters, blanks and the signs of
// quotations and labels by these, so that the checks see them. Those of markup stay.
func plainReferences(s string) string {
	found := references().FindAllStringIndex(s, -1)
	if found == nil {
		return s
	}
	code := codeIn(s)
	var b strings.Builder
	done := 0
	for _, f := range found {
		c := html.UnescapeString(s[f[0]:f[1]])
		r, size := utf8.DecodeRuneInString(c)
		if size != len(c) || code.has(f[0]) || !unicode.In(r, unicode.L, unicode.Zs, unicode.Cf, unicode.Pi, unicode.Pf) && !strings.ContainsRune(`"':[]„‚`, r) {
			continue
		}
		b.WriteString(s[done:f[0]] + c)
		done = f[1]
	}
	return b.String() + s[done:]
}

// maxPasses bounds how often a text is cleaned, since what is made plain may uncover more.
const maxPasses = 8

const roleNames = `system|developer|user|customer|assistant|human|tool|function|model|ai`

var (
	// roleTokens matches tokens by which templates and programs separate roles.
	roleTokens = text.Pattern(`(?i)<\s?\|[^<>|\n]{0,60}\|\s?>|<\|\w{1,40}>|<\w{1,40}\|>|\[\s*/?\s*(?:INST|SYS|SYSTEM|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS?)\s*\]|\[\s*SYSTEM\s+(?:MESSAGE|PROMPT|NOTE|OVERRIDE|INSTRUCTIONS?)\s*\]|\[\|(?:` + roleNames + `|endofturn)\|\]|\]~!?b[\[\]]|\[e~\[|` +
		`<<\s*/?\s*SYS\s*>>|<\s*/?\s*(?:(?:conversation|context|session|chat)[_-](?:summary|history)|tools|invoke_tool|tool_(?:results?|outputs?))(?:\s[^<>\n]{0,100})?>|(?m:^\s*</summary>\s*$)|(?m:^[\s>*-]*<\s*(?:system|developer)\s[^<>\n]*$)|\[(?:BOS|EOS)\]|\[\s*(?:ENDE|FIN|FINE|FIM|EINDE|KONIEC)\s[^\[\]\n]{0,40}(?:ZUSAMMENF|R[EÉ]SUM|RIASS|SAMENV|PODSUM|[KC]ONTEXT|[KC]ONVERSA)[^\[\]\n]{0,40}\]|[\[【][^\[\]【】\n]{0,12}(?:摘要|总结|總結|要約|요약)[^\[\]【】\n]{0,4}(?:结束|結束|终了|終了|끝)[\]】]|\[\s*/\s*(?:conversation|context)[\s_-]summary\s*\]|</?s>|<(?:start|end)_of_turn>|<(?:bos|eos|unk|pad)(?:_token)?>|<▁\w{1,20}▁>|\{\{~?\s?[#/](?:` + roleNames + `)\s?~?\}\}|<\s*/?\s*role\s*[:=][^<>\n]{0,40}>|<seed:\w{1,20}>|<extra_id_\d{1,3}>|<special_\d{1,4}>|` +
		`<\s*/?\s*(?:user|human|customer)[_-](?:query|messages?|input|request|prompt|instructions?|turn|said|says|quote|words|text|ask)\s*>|<\s*\w{1,40}\s[^<>\n]{0,80}?\b(?:role|speaker|from|author|sender)\s*=\s*["']?(?:` + roleNames + `)\b[^<>\n]{0,80}>|` +
		`<\s*/?\s*(?:(?:[\w-]{1,40}[-_])?(?:system|developer|instructions?))(?:[-_ ][\w-]{1,40})?(?:\s[^<>\n]{0,200})?/?\s*>|<\s*/\s*(?:` + roleNames + `)\s*>|` +
		// opening tags of roles begin a line; elsewhere they may stand for a name that is to be filled in
		`(?m:^)[\s>*-]*<\s*(?:` + roleNames + `)(?:\s[^<>\n]{0,200})?>`)
	// roleWords matches names of roles, which are not to be hidden from the checks of an answer
	// by other letters.
	roleWords = text.Pattern(`(?i)\b(?:users?|human|assistant|system|owner)\b`)
	// authorityTags matches tags whose names speak of instructions or authority. They are plain
	// where both of a pair are there and no code shows them.
	authorityTags = text.Pattern(`(?i)<\s*(/?)\s*((?:[\w-]{1,40}[-_])?(?:system\w*|admin\w*|root|operator|authority|instructions?|important|urgent|critical|mandatory|polic(?:y|ies)|rules?|overrides?|reminders?|notifications?|directives?|guidelines?|commands?|orders?|tasks?|priority|notices?|warnings?|context|environment|permissions?|approvals?)(?:[-_][\w-]{1,40})?)(?:\s[^<>\n]{0,200})?\s*>`)
	plainer       = strings.NewReplacer("<", "(", ">", ")", "[", "(", "]", ")", "~", "-", "{", "(", "}", ")")
)

// plainTokens replaces the brackets of role tokens by round ones, in code too: a model reads
// the token all the same.
func plainTokens(s string) string {
	folded, at := foldEncoded(s)
	if at == nil && !strings.ContainsAny(folded, "<[]{") {
		return s
	}
	words := roleWords()
	for _, tokens := range []*text.Regexp{roleTokens(), words} {
		if tokens == words && at == nil {
			break
		}
		found := tokens.FindAllStringIndex(folded, -1)
		var spans [][2]int
		var texts []string
		for _, f := range found {
			if tokens == words && strings.ContainsFunc(s[at[f[0]]:at[f[1]]], isAccented) {
				continue // of another language
			}
			from := f[0] + max(0, strings.IndexAny(folded[f[0]:f[1]], "<[]{")) // a line may begin with marks of its own
			spans, texts = append(spans, [2]int{from, f[1]}), append(texts, plainer.Replace(folded[from:f[1]]))
		}
		if s = text.ReplaceFolded(s, at, spans, texts); spans != nil {
			folded, at = foldEncoded(s)
		}
	}
	return plainAuthority(s, folded, at)
}

// plainAuthority does the same with the tags that speak of authority in a text, folded as
// foldEncoded does.
func plainAuthority(s, folded string, at []int) string {
	if !strings.Contains(folded, "/") {
		return s
	}
	found := authorityTags().FindAllStringSubmatchIndex(folded, -1)
	sides := map[string]int{} // of a name: 1 opens, 2 closes
	for _, m := range found {
		sides[strings.ToLower(folded[m[4]:m[5]])] |= 1 + m[3] - m[2]
	}
	var spans [][2]int
	var texts []string
	code := codeIn(folded)
	for _, m := range found {
		if sides[strings.ToLower(folded[m[4]:m[5]])] == 3 && !code.has(m[0]) {
			spans, texts = append(spans, [2]int{m[0], m[1]}), append(texts, plainer.Replace(folded[m[0]:m[1]]))
		}
	}
	return text.ReplaceFolded(s, at, spans, texts)
}

// foldEncoded returns s as text.Fold does, with encoded characters decoded.
func foldEncoded(s string) (folded string, at []int) {
	decoded, from := text.Decode(s)
	folded, at = text.Fold(decoded)
	switch {
	case from == nil:
		return folded, at
	case at == nil:
		return folded, from
	}
	for i, k := range at {
		at[i] = from[k]
	}
	return folded, at
}

// isAccented reports whether r is a Latin letter with an accent.
func isAccented(r rune) bool { return r >= utf8.RuneSelf && r < 0x250 }

var (
	// images matches the beginning of a Markdown image, up to the end of its label.
	images = text.Pattern(`^!+\[`)
	// embedded matches the rest of an image between two brackets.
	embedded = text.Pattern(`(?i)^\[\s*(?:[a-z][a-z0-9+.-]*:|[/\\]{2})`)
	// remark matches the beginning of a definition that shows nothing.
	remark = text.Pattern(`^\[[^\]\n]{1,200}\]:[ \t]*(?:#|<>)[ \t]*\n?[ \t]*["'(]`)
	// remote matches the end of a label with a destination outside of the folder, or with a
	// reference to one.
	remote = text.Pattern(`(?i)\]\s{0,8}(?:\(\s*<?\s*(?:[a-z][a-z0-9+.-]*:|[/\\]{2}|[^)\s]{0,20}[&\\]|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,10}/)|\[)`)
	// defined matches the definition of a destination.
	defined = text.Pattern(`(?m)^[ >\t]*\[[^\]\n]{1,200}\]:`)
	// active matches tags that load, run, hide or send something.
	active = text.Pattern(`(?i)^(?:&lt;img\s[^&<>\n]{0,80}?src\s*=|<(?:!--|!doctype|\?|\s*/?(?:img|image|iframe|script|object|embed|svg|video|audio|source|track|link|meta|style|form|base|input|button|frame|frameset|applet|math|picture|portal|template|noscript|body|html|head|q|blockquote|font)\b|[a-z][\w-]{0,40}[\s/][^<>]{0,400}?(?:on\w+|style|src|srcset|href|background|action|data|ping|aria-hidden)\s*=|[a-z][\w-]{0,40}\s[^<>]{0,200}?class\s*=[^<>]{0,80}?(?:sr-only|hidden)|[a-z][\w-]{0,40}\s(?:[^<>]{0,80}\s)?hidden\b))`)
	// bare matches tags that load nothing without attributes.
	bare = text.Pattern(`(?i)^<(?:img|image|track|link|meta|base|input|source|embed)\s*/?>`)
	// destination matches the beginning of a destination of a link.
	destination = text.Pattern(`(?i)^(?:\]\(\s*<?|\]:\s*<?|<|["'={])((?:[\s\\]|&(?:#x?[0-9a-f]{1,8}|[a-z]{2,12});?|[a-z])+?)(:|&(?:#x?0*3a|#0*58|colon);?)`)
	// running matches the schemes of destinations that hold or run content.
	running = text.Pattern(`(?i)^(?:javascript|vbscript|livescript|data|blob|file)$`)
)

// plainLinks makes images, tags and links outside of code plain that load or run something
// when they are shown.
func plainLinks(s string) string {
	if !strings.ContainsAny(s, "<[&{") {
		return s
	}
	code := codeIn(s)
	var b strings.Builder
	done := 0
	replace := func(start, end int, by string) {
		if start >= done && !code.has(start) {
			b.WriteString(s[done:start] + by)
			done = end
		}
	}
	definitions := defined().MatchString(s)
	// The scan goes by the position of what is found, so that each is replaced once.
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '!':
			if m := images().FindStringIndex(s[i:min(len(s), i+64)]); m != nil {
				label := paragraph(s[i:])
				if definitions || len(label) == maxParagraph || remote().MatchString(label) || embedded().MatchString(label[m[1]:]) {
					replace(i, i+m[1]-1, "")
				}
				i += m[1] - 2
			}
		case '&':
			if active().MatchString(s[i:min(len(s), i+600)]) {
				replace(i, i+len("&lt;"), "(")
			}
		case '[':
			if remark().MatchString(s[i:min(len(s), i+256)]) && strings.Trim(s[strings.LastIndexByte(s[:i], '\n')+1:i], " >\t") == "" {
				replace(i, i+1, "(")
			}
		case '<':
			if m := active().FindStringIndex(s[i:min(len(s), i+600)]); m != nil && !bare().MatchString(s[i:min(len(s), i+16)]) {
				replace(i, i+1, "(")
				continue
			}
			fallthrough
		case ']', '"', '\'', '=', '{':
			m := destination().FindStringSubmatchIndex(s[i:min(len(s), i+256)])
			if m != nil && running().MatchString(scheme(s[i+m[2]:i+m[3]])) {
				replace(i+m[2], i+m[5], "#")
			}
		}
	}
	b.WriteString(s[done:])
	return b.String()
}

// maxParagraph is how many bytes of a label are looked at; a longer one may end anywhere.
const maxParagraph = 2000

// paragraph returns the beginning of s up to a blank line, in bounds.
func paragraph(s string) string {
	s = s[:min(len(s), maxParagraph)]
	if end := strings.Index(s, "\n\n"); end >= 0 {
		return s[:end]
	}
	return s
}

// scheme returns the scheme of a destination as a browser reads it.
func scheme(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '\\' {
			return -1
		}
		return r
	}, html.UnescapeString(s))
}
