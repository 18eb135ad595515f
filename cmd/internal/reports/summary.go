package reports

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Summary is a summary or a replacement with the run that wrote it.
type Summary struct {
	ID            string                 `json:"id"`
	Tenant        string                 `json:"tenant"`
	Session       string                 `json:"session"`
	Seq           chat.Seq               `json:"seq"`
	Kind          chat.Kind              `json:"kind"`
	InView        bool                   `json:"in_view"`
	SummaryOf     string                 `json:"summary_of"`
	CoveredTokens int64                  `json:"covered_tokens"`
	Tokens        chat.Tokens            `json:"tokens"`
	Prose         string                 `json:"prose"`
	References    string                 `json:"references,omitempty"`
	Links         []summary.Link         `json:"links,omitempty"` // of the lines of Prose to messages
	Run           Run                    `json:"run"`
	Report        *summary.Provenance    `json:"report,omitempty"`
	Calls         []store.SummaryCallRow `json:"calls,omitempty"`

	Covers chat.Ranges `json:"-"` // SummaryOf
}

// LoadSummary returns a summary or replacement by its id, of a session or, with none, of the one that
// it was written in. ErrNotFound names it.
func LoadSummary(ctx context.Context, st *store.Store, k store.Key, id string) (Summary, error) {
	row, err := st.Reader.Summary(ctx, k, id)
	if err != nil {
		return Summary{}, err
	}
	run, err := st.Run(ctx, row.Run)
	if err != nil {
		return Summary{}, err
	}
	calls, err := st.Reader.SummaryCalls(ctx, cmp.Or(run.Origin, run.ID))
	if err != nil {
		return Summary{}, err
	}
	covered, reason, err := st.Reader.Covered(ctx, &row)
	if err != nil {
		return Summary{}, err
	}
	out := Summary{
		ID: id, Tenant: row.Key.Tenant, Session: row.Key.Session, Seq: row.Seq, Kind: row.Kind, InView: row.Included,
		SummaryOf: row.SummaryOf.String(), Covers: row.SummaryOf, CoveredTokens: covered, Tokens: row.Tokens, Run: NewRun(run),
	}
	out.Prose, out.References = extract.Split(row.Content.String())
	out.Links = summary.Links(out.Prose)
	if row.Kind == chat.KindSummary {
		if out.Report, err = ReportOf(run.Steps, reason); err != nil {
			return out, err
		}
		out.Calls = calls
	}
	return out, nil
}

// SummaryLine is a line of a summary with the messages that it names as those that it rests on.
type SummaryLine struct {
	Line    int // from 0
	Heading bool
	Text    string // without marks and links
	Seqs    []chat.Seq
}

// linkTags matches the links at the end of a line.
var linkTags = regexp.MustCompile(`(\s*\[m\d+[^\]]*\])+\s*$`)

// Lines returns the lines of the summary, without the delimiters around it.
func (s *Summary) Lines() (lines []SummaryLine) {
	body := frame.Body(s.Prose + "\n\n" + s.References)
	links := map[int][]chat.Seq{}
	for _, l := range summary.Links(body) {
		links[l.Line] = l.Seqs
	}
	for n, text := range strings.Split(body, "\n") {
		l := SummaryLine{Line: n, Seqs: links[n], Text: strings.TrimSpace(linkTags.ReplaceAllString(text, ""))}
		if head := strings.TrimLeft(l.Text, "#"); head != l.Text {
			l.Heading, l.Text = true, strings.TrimSpace(head)
		}
		if l.Text = strings.TrimPrefix(l.Text, "- "); l.Text != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// ReportOf returns the report of the step that wrote a summary. Among several it prefers
// the step whose strategy is the exclusion reason, then one that produced a summary.
func ReportOf(steps json.RawMessage, reason string) (*summary.Provenance, error) {
	var all []struct {
		Strategy string              `json:"strategy"`
		Summary  *summary.Provenance `json:"summary"`
	}
	if err := json.Unmarshal(steps, &all); err != nil {
		return nil, fmt.Errorf("the run's steps: %w", err)
	}
	var found *summary.Provenance
	best := -1
	for _, s := range all {
		if s.Summary == nil {
			continue
		}
		fits := 0
		if s.Strategy == reason {
			fits += 2
		}
		if s.Summary.WrittenBy != "" {
			fits++
		}
		if fits > best {
			found, best = s.Summary, fits
		}
	}
	return found, nil
}
