package summary

import (
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Operator is a summary that a person wrote. It is cleaned, masked and checked as a model's answer
// is, and stored with the user's newest request and the references; it needs no headings. Its links
// name messages by their seqs: [m12].
type Operator struct {
	Text string
	// Author and Note are stored in the Provenance.
	Author, Note string
}

// accept returns the summary that is stored for the operator's text.
func (w *Writer) accept(m *input) (string, error) {
	o := w.o.Operator
	sections := DefaultSections()
	if hs := headingsOf(o.Text, sections); assignSections(hs, sections) < minSections {
		sections = nil
	}
	sources := *m.sources
	sources.userScripts = scriptCounts{} // a person may write in another language
	v := validator{sections: sections, max: chat.Tokens(m.most), sources: &sources, secrets: &m.secrets}
	got, rejected := v.read(StoredAnswer{Text: o.Text, FinishReason: "stop"})
	m.report.RedactedAnswer.Add(got.redacted)
	m.report.Operator, m.report.Note = m.label(o.Author), m.label(o.Note)
	if rejected != nil {
		return "", &plan.Failure{Code: string(rejected.code)}
	}
	m.report.Unquoted, m.report.Dropped, m.numbered = got.unquoted, got.dropped, got.numbered
	return w.assemble(m, got.text, ByOperator)
}

// maxLabel is how many characters of an author or a note are kept.
const maxLabel = 500

// label returns a name or a note as it is stored.
func (m *input) label(s string) string {
	s, _ = m.secrets.Redact(Clean(s))
	return text.Head(oneLine(s), maxLabel)
}
