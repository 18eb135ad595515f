package web

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/chat"
)

// mostRows is the number of runs that the lanes show, unless all are asked for.
const mostRows = 12

// svg writes rectangles.
type svg struct{ strings.Builder }

// cents returns a number with two digits.
func cents(x float64) string { return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) }

// rect writes one with a width of at least a hundredth of a per cent; rest are attributes.
func (s *svg) rect(x, w float64, rest, title string) {
	from, to := math.Round(x*100)/100, math.Round((x+w)*100)/100
	s.WriteString(`<rect x="` + cents(from) + `%" width="` + cents(max(.01, to-from)) + `%"` + rest)
	if title == "" {
		s.WriteString("/>")
	} else {
		s.WriteString("><title>" + title + "</title></rect>")
	}
}

// html returns the text, which is of numbers and constants.
func (s *svg) html() template.HTML { return template.HTML(s.String()) } //nolint:gosec // see there

// draw draws blocks in the colours of their kinds. In a lane of few, each tells its content.
func draw(blocks []block, only func(*block) bool) template.HTML {
	const titled, apart = 150, 3 * pixel
	by := map[string]*svg{}
	for i := range blocks {
		b := &blocks[i]
		if !only(b) {
			continue
		}
		class, title, w := kinds[b.kind()].class, "", b.W
		if by[class] == nil {
			by[class] = &svg{}
		}
		if len(blocks) <= titled {
			title = fmt.Sprintf("%s, %s: %s", term.Plural(b.Messages, "message", "messages"),
				term.Plural(b.Tokens, "token", "tokens"), &b.tally)
		}
		if w >= apart {
			w -= apart / 4
		}
		by[class].rect(b.X, w, "", title)
	}
	var all svg
	for _, class := range []string{"system", "user", "assistant", "call", "result"} {
		if by[class] != nil {
			all.WriteString(`<g class="k-` + class + `">` + by[class].String() + "</g>")
		}
	}
	return all.html()
}

// hatch draws one rectangle over neighbouring blocks.
func hatch(blocks []block) template.HTML {
	var s svg
	for i := 0; i < len(blocks); i++ {
		if !isOut(&blocks[i]) {
			continue
		}
		from := blocks[i].X
		for i+1 < len(blocks) && isOut(&blocks[i+1]) {
			i++
		}
		s.rect(from, blocks[i].X+blocks[i].W-from, "", "")
	}
	return s.html()
}

func isOut(b *block) bool { return b.state() == outOfView }

// lanes are the drawing of a session at a moment.
type lanes struct {
	Said, Hatch, Seen, Written, Marks template.HTML
	Plumb                             []float64 // where runs were
	Head                              float64   // the moment: all beyond it was not yet said
	Tail                              float64   // where it starts; 0 where nothing is before it
	Pins, Reasoning                   bool      // there are some
	Brackets                          []bracket
	Rows                              []laneRow
	Older                             int    // rows that are folded
	Line                              string // the size of the view
	Levels, Ticks                     []level
	Total                             string
}

// bracket stands over the messages that a summary stands for.
type bracket struct {
	X, W, End float64
	Label     string
}

// level is a value on an axis.
type level struct {
	At, X        float64
	Class, Label string
}

// laneRow shows the messages that a run took out of the view, or brought back.
type laneRow struct {
	*moment
	Out, Hatch, Back template.HTML
	Text, Anchor     string
	At               float64
}

// draw draws the lanes at the moment of a page.
func (p *sessionPage) draw(all bool) *lanes {
	l := p.Log
	v := &lanes{Head: l.end(p.until), Total: short(float64(l.Total())) + " tokens said"}
	blocks := l.blocks(func(q chat.Seq) int {
		switch {
		case q > p.until:
			return notYet
		case p.view.Has(q):
			return inView
		}
		return outOfView
	})
	v.Said, v.Hatch = draw(blocks, func(*block) bool { return true }), hatch(blocks)
	v.Seen = draw(blocks, func(b *block) bool { return b.state() == inView })
	p.drawWritten(v)
	p.drawMarks(v)
	p.drawSize(v)
	rows := p.moments
	if len(rows) > mostRows && !all {
		v.Older = len(rows) - mostRows
		rows = rows[v.Older:]
	}
	for i := range rows {
		v.Rows = append(v.Rows, p.drawRun(&rows[i]))
	}
	for _, m := range p.moments {
		v.Plumb = append(v.Plumb, math.Round(100*l.end(m.Read))/100)
	}
	step := math.Pow(10, math.Floor(math.Log10(math.Max(1, float64(l.Total())))))
	for _, f := range []float64{.5, .25, .2} {
		if float64(l.Total())/(step*f) <= 6 {
			step *= f
		}
	}
	for t := step; l.Total() > 0 && t < .86*float64(l.Total()); t += step {
		v.Ticks = append(v.Ticks, level{At: 100 * t / float64(l.Total()), Label: short(t)})
	}
	return v
}

// drawRun draws the row of a run.
func (p *sessionPage) drawRun(m *moment) laneRow {
	r := laneRow{moment: m, Anchor: "start"}
	of, back := m.out, len(m.out) == 0 || m.Undoes != 0 && p.Log.size(m.back) >= p.Log.size(m.out) // an undo of an undo takes out
	if back {
		of = m.back
	}
	blocks := p.Log.blocks(func(q chat.Seq) int {
		if of.Has(q) {
			return outOfView
		}
		return inView
	})
	var n tally
	low, high := 100.0, 0.0
	for i := range blocks {
		if b := &blocks[i]; isOut(b) {
			n.add(&b.tally)
			low, high = min(low, b.X), max(high, b.X+b.W)
		}
	}
	switch {
	case m.Kind == "erase":
		r.Text = "erased words; the view kept its messages"
	case n.Messages == 0:
		r.Text = "no message that was said"
	case back:
		r.Back, r.Text = hatch(blocks), "brought back "+term.Plural(n.Messages, "message", "messages")
	default:
		r.Out, r.Hatch = draw(blocks, isOut), hatch(blocks)
		r.Text = fmt.Sprintf("%s, %s out", term.Plural(n.Messages, "message", "messages"), short(float64(n.Tokens)))
	}
	if m.UndoneBy != 0 {
		r.Text += fmt.Sprintf(" · undone by %d", m.UndoneBy)
	}
	if r.At = high + .8; high > 70 { // beside its blocks, where there is space
		r.At, r.Anchor = low-.8, "end"
	}
	if high > 70 && low < 30 {
		r.At = 99 // over them
	}
	return r
}

// drawWritten draws summaries and replacements that are in the view.
func (p *sessionPage) drawWritten(v *lanes) {
	l, scale := p.Log, 100/math.Max(1, float64(p.Log.Total()))
	var s svg
	var x, w float64 // of replacements that touch
	for _, i := range p.order {
		q := l.Messages.Seqs[i]
		if !l.written(i) || !p.view.Has(q) {
			continue
		}
		at, width := l.end(l.Messages.Positions[i]-1), float64(l.Messages.Tokens[i])*scale
		if l.kind(i) == kindReplacement {
			if w > 0 && at-x-w > pixel {
				s.rect(x, w, ` class="k-replacement"`, "")
				w = 0
			}
			if w == 0 {
				x = at
			}
			w = max(w, at+width-x)
			continue
		}
		b, covered := bracket{X: at, End: at + width}, p.summaries[q]
		if len(covered) > 0 {
			b.X, b.End = min(b.X, l.end(covered[0].Lo-1)), max(b.End, l.end(covered[len(covered)-1].Hi-1))
		}
		b.End = min(b.End, 100)
		if b.W = b.End - b.X; b.W > 16 {
			b.Label = short(float64(l.Messages.Tokens[i])) + " for " + short(float64(l.size(covered)))
			for _, m := range p.moments {
				if m.wrote.Has(q) {
					b.Label = fmt.Sprintf("summary of run %d: ", m.ID) + b.Label
				}
			}
		}
		v.Brackets = append(v.Brackets, b)
		s.rect(b.X, min(width, b.W), ` class="k-summary"`, "")
	}
	if w > 0 {
		s.rect(x, w, ` class="k-replacement"`, "")
	}
	v.Written = s.html()
}

// drawMarks draws the pins, the messages whose reasoning is out of the view, the start of the tail, and frames for the
// messages that a line of a summary rests on.
func (p *sessionPage) drawMarks(v *lanes) {
	l := p.Log
	var s svg
	if p.tail > 0 {
		v.Tail = l.end(p.tail - 1)
	}
	for _, of := range []struct {
		seqs, class, title string
		some               *bool
	}{{l.Pinned, "pin", "pinned", &v.Pins}, {l.NoReasoning, "rsn", "its reasoning is out of the view", &v.Reasoning}} {
		all := ranges(of.seqs)
		*of.some = len(all) > 0
		for _, r := range all[:min(len(all), mostBlocks)] {
			s.rect(l.end(r.Lo-1), max(.2, l.end(min(r.Hi-1, l.LastSeq))-l.end(r.Lo-1)), ` class="`+of.class+`" y="32"`, of.title)
		}
	}
	seen := map[chat.Seq]bool{}
	for _, r := range p.Rows {
		if r.Summary == nil {
			continue
		}
		for _, line := range r.Summary.Shown {
			for _, q := range line.Seqs {
				if !seen[q] {
					s.rect(l.end(q-1), max(.24, l.end(q)-l.end(q-1)), fmt.Sprintf(` class="hl" y="-3" data-seq="%d"`, q), "")
				}
				seen[q] = true
			}
		}
	}
	v.Marks = s.html()
}

// drawSize draws the size of the view: it grows by each message, and each run makes it smaller.
func (p *sessionPage) drawSize(v *lanes) {
	l, x := p.Log, p.State.Explanation
	top := max(x.Start, x.Target, p.State.LiveTokens)
	for _, m := range p.moments {
		top = max(top, m.TokensBefore, m.TokensAfter)
	}
	if x.Window < 3*top {
		top = max(top, x.Window)
	}
	scale := 1 / math.Max(1, 1.1*float64(top))
	var points []string
	point := func(at float64, t chat.Tokens) {
		points = append(points, cents(10*at)+","+cents(100-100*float64(t)*scale))
	}
	first := chat.Tokens(0)
	if len(p.moments) > 0 && l.More { // earlier ones are not known
		first = max(0, p.moments[0].TokensBefore-l.said(p.moments[0].Read))
	}
	point(0, first)
	for _, m := range p.moments {
		point(l.end(m.Read), m.TokensBefore)
		point(l.end(m.Read), m.TokensAfter)
	}
	point(100, p.State.LiveTokens)
	v.Line = strings.Join(points, " ")
	for _, of := range []level{
		{At: float64(x.Window), Label: "window", Class: "axis"},
		{At: float64(x.Start), Label: "start", Class: "mark-start"},
		{At: float64(x.Target), Label: "target", Class: "mark-target"},
	} {
		if of.At <= 0 || of.At*scale >= 1 {
			continue
		}
		of.Label += " " + short(of.At)
		of.At, of.X = math.Round(92*(1-of.At*scale)), 4
		if n := len(v.Levels); n > 0 && of.At-v.Levels[n-1].At < 12 { // their texts would meet
			of.X = v.Levels[n-1].X + 84
		}
		v.Levels = append(v.Levels, of)
	}
}
