package summarizer

import (
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/summarize"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// judge is what an answer says, or why it is no summary.
func (w *Writer) judge(m *material, a *Answer) (string, *summarize.Rejection) {
	gate := summarize.Gate{
		Sections: summarize.DefaultSections(), Max: chat.Tokens(w.callTokens(m)), Counter: tokens.Chars4{}, Evidence: m.evidence,
	}
	if m.custom() {
		gate.Sections = nil
	}
	answer := summarize.Answer{Text: a.Text, FinishReason: a.FinishReason}
	accepted, rejected := gate.Read(answer)
	m.report.RedactedAnswer.Add(accepted.Redacted)
	m.report.Unquoted += accepted.Unquoted
	return accepted.Text, rejected
}
