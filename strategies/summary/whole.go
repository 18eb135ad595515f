package summary

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/internal/str"
)

// whole returns the summary that is stored: the model's prose, with what has to be exact
// taken from the messages themselves, and the references beside it.
func (w *Writer) whole(m *input, prose string) (string, error) {
	if !m.custom() && !m.task.Followed {
		prose = Assemble(prose, Facts{LastUser: m.evidence.LastUser()})
	}
	text := extract.Disarm(str.Trim(prose))
	if n := m.updates; n > 0 {
		text += fmt.Sprintf(updatedLine, n)
	}
	if block := m.digest.References(m.references); block != "" {
		m.report.References = roughly(block)
		text += "\n\n" + block
	}
	m.report.WrittenBy, m.report.Tokens = ByModel, roughly(text)
	if m.report.Tokens >= m.report.CoveredTokens {
		m.report.WrittenBy = ""
		return "", tooLarge()
	}
	return text, nil
}

// updatedLine says in the summary how often it was retold, for who reads it and for the
// prompt of the next one.
const updatedLine = "\n\n(Brought up to date: %d times.)"

// retold returns a summary as the next prompt shows it: what is not prose is made anew.
func retold(summary string) string {
	prose, _ := extract.Split(summary)
	return str.Trim(updated().ReplaceAllString(prose, ""))
}

func updated() *regexp.Regexp { return regexp.MustCompile(`\(Brought up to date: (\d{1,6}) times\.\)`) }

// updatesOf returns how often a summary was brought up to date.
func updatesOf(summary string) int {
	found := updated().FindStringSubmatch(summary)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return n
}
