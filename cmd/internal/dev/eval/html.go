package eval

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/term"
)

//go:embed report.html
var reportHTML string

// page holds the data of the report template.
type page struct {
	*Result
	Made     string
	Sources  []string
	Sections []section
}

// section holds the charts and figures of one cut.
type section struct {
	Cut     Cut
	Charts  []chart
	Figures []Figure
	// Headings are those of the measures in Rows.
	Headings []string
	Rows     []measureRow
}

// measureRow holds further measures of a figure.
type measureRow struct {
	*Figure
	Values    []*float64
	Intervals []*Interval
}

// addRows adds the measures that are not in the first table.
func (s *section) addRows() {
	shown := known(slices.Concat(identifierMeasures, textMeasures), s.Figures)
	for _, k := range shown {
		s.Headings = append(s.Headings, measureNames[k].of)
	}
	for i := range s.Figures {
		row := measureRow{Figure: &s.Figures[i]}
		for _, k := range shown {
			row.Values = append(row.Values, *row.all()[k])
			row.Intervals = append(row.Intervals, *row.Figure.Intervals.all()[k])
		}
		s.Rows = append(s.Rows, row)
	}
}

// WriteHTML writes a self-contained HTML report. sources names the origins of the sessions.
func (r *Result) WriteHTML(w io.Writer, made time.Time, sources []string) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"percent": percent, "share": share100, "points": points, "money": money, "readable": term.CleanLines, "whole": term.Count[int], "count": func(v float64) string { return term.Count(int64(v)) },
		"signed": func(i *Interval) string { return signed{i}.String() },
		"size": func() map[string]int {
			return map[string]int{
				"W": chartWidth, "H": chartHeight, "Left": plotLeft, "Right": plotRight, "Top": plotTop, "Bottom": plotBottom,
				"Label": axisLabel, "XTick": xLabelY, "YTickX": yTickX, "YTick": yTickY, "Middle": (plotLeft + plotRight) / 2,
			}
		},
	}).Parse(reportHTML)
	if err != nil {
		return err
	}
	p := page{Result: r, Made: made.UTC().Format("2006-01-02 15:04 UTC"), Sources: sources}
	for _, c := range r.Cuts {
		s := section{Cut: c, Charts: charts(r, c.Cut)}
		for _, f := range r.Figures {
			if f.Cut == c.Cut {
				s.Figures = append(s.Figures, f)
			}
		}
		s.addRows()
		p.Sections = append(p.Sections, s)
	}
	return t.Execute(w, p)
}
