package summary

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// verbatimNote leads the user's request.
	verbatimNote = "(verbatim, from the messages themselves)"
	// shortRequest is the number of characters up to which a request may say only yes or which
	// option: then the model's account of the task stays in front of it.
	shortRequest = 80
)

// insertRequest puts the user's request, verbatim and redacted, into the active task at the
// beginning of an accepted answer, with its middle cut out if it is long, and the tag of its message.
// It replaces the model's account of the task unless the request is short. An empty request changes
// nothing, and a request that the answer has already is replaced.
func insertRequest(answer, request, tag string) string {
	answer = closeFence(text.Trim(answer))
	if text.Trim(request) == "" {
		return answer
	}
	account, rest := "", answer
	for _, h := range headingsOf(answer, nil) {
		if h.style == 2 && sameTitle(h.title, ActiveTask) {
			var after string
			account, after, _ = strings.Cut(answer[h.body:h.end], verbatimNote)
			rest = answer[:h.start] + afterQuotation(after) + answer[h.end:]
			break
		}
	}
	out := "## " + ActiveTask + "\n"
	if account = closeFence(text.Trim(account)); account != "" && !text.Longer(text.Trim(request), shortRequest) {
		out += account + "\n\n"
	}
	if rest = text.Trim(rest); rest != "" && rest[0] != '#' {
		rest = "## Notes\n" + rest // not part of the task
	}
	return text.Trim(out + quoted(request, tag) + "\n\n" + rest)
}

// afterQuotation returns a text without its first line and the quotation after it.
func afterQuotation(s string) string {
	_, s, _ = strings.Cut(s, "\n")
	for s != "" && strings.IndexByte(">\n", s[0]) >= 0 {
		_, s, _ = strings.Cut(s, "\n")
	}
	return s
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

// withoutBlockQuotes returns an answer without the marks of quoted lines outside of code: in a
// summary they mark the user's words. Code within a quotation ends with it, other code with the
// answer.
func withoutBlockQuotes(answer string) string {
	var b strings.Builder
	fence, quoted := "", ""
	for line := range strings.Lines(answer) {
		if fence == "" && strings.HasPrefix(strings.TrimLeft(line, " "), ">") {
			line = strings.TrimLeft(line, "> ")
			quoted = fenceAfter(quoted, line)
		} else {
			if quoted != "" {
				b.WriteString(quoted + "\n")
				quoted = ""
			}
			fence = fenceAfter(fence, line)
		}
		b.WriteString(line)
	}
	return closeFence(b.String())
}

// quoted returns a request with each line marked as a quotation, so that none reads as a heading.
func quoted(s, tag string) string {
	var b strings.Builder
	b.WriteString(text.Trim(verbatimNote+" "+tag) + "\n")
	for line := range strings.SplitSeq(cutCenter(text.Trim(s), maxAsk), "\n") {
		b.WriteString("\n> " + strings.TrimRight(line, "\r"))
	}
	return b.String()
}
