package summary

import (
	"html"
	"regexp"
	"strings"

	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// maxPasses bounds how often a text is cleaned, since each pass may uncover more.
const maxPasses = 8

// Clean returns a text as it may stand in a stored summary, whoever wrote it: without hidden
// characters, and with delimiters of summaries and of roles, active HTML, images and links that
// run code made plain. It is idempotent.
func Clean(s string) string {
	s = text.WithoutHidden(s)
	for range maxPasses {
		was := s
		if s = plainMarkup(plainTokens(frame.Escape(s))); s == was {
			break
		}
	}
	return s
}

var (
	// roleTokens matches tokens by which templates and programs separate roles. A name of a role
	// alone opens a turn only where it begins a line: elsewhere it may be a placeholder.
	roleTokens = regexp.MustCompile(`(?i)<\s?\|[^<>|\n]{0,60}\|\s?>|<\|\w{1,40}>|<\w{1,40}\|>|\[\s*/?\s*(?:INST|SYS|BOS|EOS|SYSTEM(?:[ _][A-Z]+)?|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS?)\s*\]|\]~!?b[\[\]]|\[e~\[|<<\s*/?\s*SYS\s*>>|</?s>|` +
		`<\s*/?\s*(?:(?:start|end)_of_turn|(?:bos|eos|unk|pad)(?:_token)?|seed:\w{1,20}|extra_id_\d{1,3}|tools|invoke\w{0,10}|tool_(?:results?|outputs?)|(?:[\w-]{1,40}[-_])?(?:system|developer|instructions?|reminder|summary)(?:[-_][\w-]{1,40})?|(?:user|human|customer)[_-](?:query|messages?|input|request|prompt|instructions?|turn))(?:\s[^<>\n]{0,200})?/?\s*>|` +
		`<\s*/\s*(?:` + roleNames + `)\s*>|(?m:^)[\s>*-]*<\s*(?:` + roleNames + `)(?:\s[^<>\n]{0,200})?>|<\s*\w{1,40}\s[^<>\n]{0,80}?\brole\s*=[^<>\n]{0,80}>|\{\{~?\s?[#/](?:` + roleNames + `)\s?~?\}\}`)
	// turn matches a line that begins like a turn of a transcript.
	turn = regexp.MustCompile(`(?im)^(human|assistant)[:：]`)
)

const roleNames = `system|developer|user|customer|assistant|human|tool|function|model|ai`

var plainer = strings.NewReplacer("<", "(", ">", ")", "[", "(", "]", ")", "~", "-", "{", "(", "}", ")")

// plainTokens replaces the brackets of role tokens by round ones, in code too: a model reads
// the token all the same. Letters and brackets that look like others count as these.
func plainTokens(s string) string {
	folded, at := text.Fold(s)
	var spans [][2]int
	var texts []string
	for _, f := range roleTokens.FindAllStringIndex(folded, -1) {
		from := f[0] + max(0, strings.IndexAny(folded[f[0]:f[1]], "<[]{")) // a line may begin with marks of its own
		spans, texts = append(spans, [2]int{from, f[1]}), append(texts, plainer.Replace(folded[from:f[1]]))
	}
	s = text.ReplaceFolded(s, at, spans, texts)
	return turn.ReplaceAllString(s, "($1)")
}

var (
	// active matches the beginning of tags that load, run, hide or send something, and those with
	// attributes.
	active = regexp.MustCompile(`(?i)^(?:<|&lt;)(?:!--|!doctype|\?|\s*/?(?:img|image|iframe|script|object|embed|svg|video|audio|source|track|link|meta|style|form|base|input|button|frame|frameset|applet|math|portal|template|body|html|head)\b[\s/>]|[a-z][\w-]{0,40}[\s/][^<>]{0,400}?(?:=|hidden\b))`)
	// destination matches the end of the label of an image, and the definition of its destination.
	destination = regexp.MustCompile(`\](?:\s{0,8}[(\[]|:)`)
	// running matches the schemes of destinations that hold or run content.
	running = regexp.MustCompile(`^(?:javascript|vbscript|livescript|data|blob|file):`)
)

// plainMarkup makes images, tags and links outside of code plain that load or run something when
// they are shown.
func plainMarkup(s string) string {
	if !strings.ContainsAny(s, "<[&") {
		return s
	}
	code := codeIn(s)
	last := 0 // where the last destination begins
	for _, m := range destination.FindAllStringIndex(s, -1) {
		last = m[0]
	}
	var b strings.Builder
	done := 0
	replace := func(start, end int, by string) {
		if start >= done && !code.has(start) {
			b.WriteString(s[done:start] + by)
			done = end
		}
	}
	for i := range len(s) {
		window := s[i:min(len(s), i+600)]
		switch s[i] {
		case '!':
			if strings.HasPrefix(window, "![") && (strings.HasPrefix(window, "![[") || i < last) {
				replace(i, i+1, "")
			}
		case '<', '&':
			if m := active.FindStringIndex(window); m != nil {
				replace(i, i+1+3*strings.Count(window[:1], "&"), "(")
			} else if s[i] == '<' && runs(window[1:]) {
				replace(i, i+1, "(")
			}
		case ']':
			if strings.HasPrefix(window, "](") || strings.HasPrefix(window, "]:") {
				if runs(strings.TrimLeft(window[2:], " \t\n<")) {
					replace(i+2, i+2, "#")
				}
			}
		}
	}
	return b.String() + s[done:]
}

// runs reports whether a destination, as a browser reads it, holds or runs content.
func runs(destination string) bool {
	destination = strings.Map(func(r rune) rune {
		if r <= ' ' || r == '\\' {
			return -1
		}
		return r
	}, html.UnescapeString(destination[:min(len(destination), 200)]))
	return running.MatchString(strings.ToLower(destination))
}
