package eval

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
)

// Dimensions of a chart in units of the SVG, chosen so that on a phone screen its text has
// the size of the surrounding text.
const (
	chartWidth, chartHeight            = 360, 264
	plotLeft, plotRight                = 38, 342
	plotTop, plotBottom                = 10, 222
	colors                             = 8
	axisLabel, xLabelY, yTickX, yTickY = 254, 238, 33, 4
)

// chart plots one measure against the tokens kept at one cut, with a line per policy.
type chart struct {
	Title  string
	XTicks []tick
	YTicks []tick
	Lines  []line
}

// tick is a grid line with its label.
type tick struct {
	At    string
	Label string
}

// line plots one policy, with one round or several.
type line struct {
	Policy string
	Color  int
	Dash   bool
	// Path and Band connect the points and their intervals; empty for fewer than two.
	Path, Band string
	Points     []point
}

type point struct {
	X, Y, Low, High string
	Interval        bool
	Title           string
}

// charted are the measures with a chart, if there is anything of them to keep.
var charted = []int{
	keyed, loose, strict, counted + int(retention.Next10), counted + int(retention.Asks), counted + int(retention.Constraints), words,
	counted + int(retention.Errors), counted + int(retention.Facts), counted + int(retention.ReferencePrecision), counted + int(retention.ReferenceShare),
}

// charts returns one chart for each of the measures in charted that have values at a cut.
func charts(r *Result, cut float64) []chart {
	var widest float64
	for _, f := range r.Figures {
		if f.Cut == cut && f.TokensKept != nil {
			widest = max(widest, *f.TokensKept)
		}
	}
	step := niceStep(widest)
	end := step * math.Ceil(widest/step-1e-9)
	if end == 0 {
		end = step
	}
	var out []chart
	for _, m := range charted {
		name := measureNames[m].of
		c := chart{Title: strings.ToUpper(name[:1]) + name[1:], XTicks: ticks(end, step, x), YTicks: ticks(1, 0.25, func(v, _ float64) string { return y(v) })}
		for i, policy := range r.lines() {
			l := line{Policy: policy, Color: i % colors, Dash: i >= colors}
			var path, upper, lower []string
			for k := range r.Figures {
				f := &r.Figures[k]
				v, interval := *f.all()[m], *f.Intervals.all()[m]
				if f.Cut != cut || f.line() != policy || v == nil {
					continue
				}
				p := point{X: x(*f.TokensKept, end), Y: y(*v), Title: fmt.Sprintf("%s at %s: %s with %s of the tokens", policy, f.Limit(), percent(v), percent(f.TokensKept))}
				path = append(path, p.X+","+p.Y)
				if interval != nil {
					p.Interval, p.Low, p.High = true, y(interval.Low), y(interval.High)
					p.Title += ", 95 % in " + interval.String()
					upper, lower = append(upper, p.X+","+p.High), append([]string{p.X + "," + p.Low}, lower...)
				}
				l.Points = append(l.Points, p)
			}
			if len(path) > 1 {
				l.Path = strings.Join(path, " ")
			}
			if len(upper) > 1 {
				l.Band = strings.Join(append(upper, lower...), " ")
			}
			c.Lines = append(c.Lines, l)
		}
		if m == keyed || slices.ContainsFunc(c.Lines, func(l line) bool { return len(l.Points) > 0 }) {
			out = append(out, c)
		}
	}
	return out
}

// line returns the name of the line that a figure belongs to.
func (f *Figure) line() string { return f.Policy + f.times() }

// lines returns the names of the lines, in order.
func (r *Result) lines() []string {
	var out []string
	for i := range r.Figures {
		if name := r.Figures[i].line(); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// niceStep returns 1, 2 or 5 times a power of ten such that three to six steps reach end.
func niceStep(end float64) float64 {
	if end <= 0 {
		return 0.01
	}
	power := math.Pow(10, math.Floor(math.Log10(end/4)))
	for _, f := range []float64{1, 2, 5} {
		if f*power*5 >= end {
			return f * power
		}
	}
	return 10 * power
}

func ticks(end, step float64, place func(v, end float64) string) []tick {
	var out []tick
	for i := 0; float64(i)*step <= end+1e-9; i++ {
		v := float64(i) * step
		out = append(out, tick{place(v, end), share100(v)})
	}
	return out
}

func x(v, end float64) string { return coordinate(plotLeft + (plotRight-plotLeft)*v/end) }

func y(v float64) string { return coordinate(plotBottom - (plotBottom-plotTop)*v) }

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
