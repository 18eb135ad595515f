package summary

import (
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// judge returns what an answer says, or why it is no summary.
func (w *Writer) judge(m *input, a *StoredAnswer) (string, *Rejection) {
	gate := Validator{
		Sections: DefaultSections(), Max: chat.Tokens(w.callTokens(m)), Counter: tokens.Chars4{}, Evidence: m.evidence,
	}
	if m.custom() {
		gate.Sections = nil
	}
	answer := Answer{Text: a.Text, FinishReason: a.FinishReason}
	accepted, rejected := gate.Read(answer)
	m.report.RedactedAnswer.Add(accepted.Redacted)
	m.report.Unquoted += accepted.Unquoted
	return accepted.Text, rejected
}
