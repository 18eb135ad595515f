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
// nothing. insertRequest is idempotent.
func insertRequest(answer, request, tag string) string {
	answer = closeFence(text.Trim(answer))
	if text.Trim(request) == "" {
		return answer
	}
	account, rest := "", answer
	for _, h := range headingsOf(answer, nil) {
		if h.style == 2 && sameTitle(h.title, ActiveTask) {
			account, _, _ = strings.Cut(answer[h.body:h.end], verbatimNote)
			rest = answer[:h.start] + answer[h.end:]
			break
		}
	}
	out := "## " + ActiveTask + "\n"
	if account = text.Trim(account); account != "" && !text.Longer(text.Trim(request), shortRequest) {
		out += account + "\n\n"
	}
	return text.Trim(out + quoted(request, tag) + "\n\n" + text.Trim(rest))
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

// quoted returns a request with each line marked as a quotation, so that none reads as a heading.
func quoted(s, tag string) string {
	var b strings.Builder
	b.WriteString(text.Trim(verbatimNote+" "+tag) + "\n")
	for line := range strings.SplitSeq(cutCenter(text.Trim(s), maxAsk), "\n") {
		b.WriteString("\n> " + strings.TrimRight(line, "\r"))
	}
	return b.String()
}
