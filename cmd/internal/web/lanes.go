package web

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// mostBlocks is the number of blocks of a lane: one is a pixel of a lane of so many.
const mostBlocks = 1100

// mostRows is the number of runs that the lanes show, unless all are asked for.
const mostRows = 12

// letters are the kinds of messages as a timeline has them, and kinds the classes of their colours and their names.
const letters = "tcuasoMR"

var kinds = [len(letters)]struct{ class, one, many string }{
	{"result", "tool result", "tool results"}, {"call", "tool call", "tool calls"}, {"user", "message by the user", "by the user"},
	{"assistant", "message by the assistant", "by the assistant"}, {"system", "system message", "system messages"},
	{"system", "other message", "other messages"}, {"summary", "summary", "summaries"}, {"replacement", "replacement", "replacements"},
}

// Places in kinds.
const (
	kindUser        = 2
	kindSummary     = 6
	kindReplacement = 7
)

// states of messages at a moment.
const (
	inView = iota
	outOfView
	notYet
)

// block is a part of a lane, in per cent of it: a message, or neighbours too small for a block of their own.
type block struct {
	X, W     float64
	Kind     int
	State    int
	First    chat.Seq
	Messages int
	Tokens   chat.Tokens
	sizes    [len(letters)]chat.Tokens
	counts   [len(letters)]int
}

// log is a timeline as lanes and lists read it.
type log struct {
	store.Timeline
	total  chat.Tokens
	writes []chat.Seq // of runs
}

func newLog(t store.Timeline) *log {
	l := &log{Timeline: t}
	for i, q := range t.Messages.Seqs {
		if l.written(i) {
			l.writes = append(l.writes, q)
		}
	}
	if n := len(t.Messages.Said); n > 0 {
		l.total = t.Messages.Said[n-1] - l.origin()
	}
	return l
}

// origin returns the tokens said before the first message of the timeline.
func (l *log) origin() chat.Tokens {
	m := l.Messages
	if len(m.Seqs) == 0 || l.written(0) {
		return 0
	}
	return m.Said[0] - m.Tokens[0]
}

// kind returns the kind of a message by its place, and written whether a run wrote it.
func (l *log) kind(i int) int     { return max(0, strings.IndexByte(letters, l.Messages.Kinds[i])) }
func (l *log) written(i int) bool { return l.kind(i) >= kindSummary }

// end returns the place, in per cent, of the end of what was said up to a seq.
func (l *log) end(seq chat.Seq) float64 {
	i, found := slices.BinarySearch(l.Messages.Seqs, seq)
	if !found {
		i--
	}
	if i < 0 || l.total == 0 {
		return 0
	}
	return 100 * float64(l.Messages.Said[i]-l.origin()) / float64(l.total)
}

// start returns the place of a message.
func (l *log) start(seq chat.Seq) float64 { return l.end(seq - 1) }

// blocks returns the blocks of what was said. None crosses the edge of a state, unless the states alone are more than
// mostBlocks: then that of the most tokens counts.
func (l *log) blocks(state func(chat.Seq) int) []block {
	out := l.merge(state, false)
	if len(out) > mostBlocks {
		out = l.merge(state, true)
	}
	return out
}

func (l *log) merge(state func(chat.Seq) int, across bool) []block {
	const pixel = 100.0 / mostBlocks
	var out []block
	from, open := 0, block{} // from: the first block of the state; open: of neighbours that are too small
	var states [3]chat.Tokens
	flush := func(next bool) {
		switch {
		case open.Messages == 0:
		case open.W < pixel && next && open.counts[kindUser] < open.Messages && len(out) > from: // a large one follows
			last := &out[len(out)-1]
			last.W, last.Messages, last.Tokens = open.X+open.W-last.X, last.Messages+open.Messages, last.Tokens+open.Tokens
			last.add(&open)
		default:
			out = append(out, open)
		}
		open, states = block{}, [3]chat.Tokens{}
	}
	current, x := -1, 0.0
	for i, q := range l.Messages.Seqs {
		if l.written(i) {
			continue
		}
		s, kind, tokens := state(q), l.kind(i), l.Messages.Tokens[i]
		end := 100 * float64(l.Messages.Said[i]-l.origin()) / float64(max(1, l.total))
		if s != current && !across {
			flush(false)
			widen(out[from:], 2*pixel)
			current, from = s, len(out)
		}
		b := block{X: x, W: end - x, Kind: kind, State: s, First: q, Messages: 1, Tokens: tokens}
		b.sizes[kind], b.counts[kind] = tokens, 1
		x = end
		if b.W >= pixel {
			flush(!across)
			out = append(out, b)
			continue
		}
		if states[s] += tokens; open.Messages == 0 {
			open = b
		} else {
			open.W, open.Messages, open.Tokens = end-open.X, open.Messages+1, open.Tokens+tokens
			open.add(&b)
			for other, n := range states {
				if n > states[open.State] {
					open.State = other
				}
			}
		}
		if open.W >= pixel {
			flush(false)
		}
	}
	flush(false)
	widen(out[from:], 2*pixel)
	return out
}

// add counts the messages of another block, and takes the kind with the most tokens.
func (b *block) add(o *block) {
	for k, n := range o.sizes {
		b.sizes[k] += n
		b.counts[k] += o.counts[k]
		if b.sizes[k] > b.sizes[b.Kind] {
			b.Kind = k
		}
	}
}

// widen gives the blocks of the user's messages a least width, which it takes from their larger neighbours.
func widen(blocks []block, least float64) {
	for i := range blocks {
		b := &blocks[i]
		more := least - b.W
		if b.counts[kindUser] < b.Messages || more <= 0 {
			continue
		}
		before, after := 0.0, 0.0
		if i > 0 && blocks[i-1].counts[kindUser] < blocks[i-1].Messages {
			before = blocks[i-1].W
		}
		if i+1 < len(blocks) && blocks[i+1].counts[kindUser] < blocks[i+1].Messages {
			after = blocks[i+1].W
		}
		switch {
		case max(before, after) < more+least:
		case before >= after:
			blocks[i-1].W -= more
			b.X, b.W = b.X-more, least
		default:
			blocks[i+1].X, blocks[i+1].W = blocks[i+1].X+more, after-more
			b.W = least
		}
	}
}

// said returns what a block holds.
func (b *block) said() string {
	if b.Messages == 1 {
		return fmt.Sprintf("%d: %s, %s", b.First, kinds[b.Kind].one, term.Plural(b.Tokens, "token", "tokens"))
	}
	return fmt.Sprintf("%d messages, %s tokens: %s", b.Messages, term.Count(b.Tokens), counted(b.counts))
}

// counted returns numbers of messages by kind, the most first.
func counted(counts [len(letters)]int) string {
	order := []int{0, 1, 2, 3, 4, 5, 6, 7}
	slices.SortStableFunc(order, func(a, b int) int { return counts[b] - counts[a] })
	var parts []string
	for _, k := range order {
		name := kinds[k].many
		if counts[k] == 1 && !strings.HasPrefix(name, "by ") {
			name = kinds[k].one
		}
		if counts[k] > 0 {
			parts = append(parts, term.Count(counts[k])+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}

// svg writes rectangles.
type svg struct{ strings.Builder }

func number2(x float64) string { return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) }

// rect writes one with a width of at least a hundredth of a per cent; rest are attributes.
func (s *svg) rect(x, w float64, rest, title string) {
	end := math.Round((x+w)*100) / 100
	x = math.Round(x*100) / 100
	s.WriteString(`<rect x="` + number2(x) + `%" width="` + number2(max(.01, end-x)) + `%"` + rest)
	if title == "" {
		s.WriteString("/>")
		return
	}
	s.WriteString("><title>" + template.HTMLEscapeString(title) + "</title></rect>")
}

// html returns what was written: of numbers and constants.
func (s *svg) html() template.HTML { return template.HTML(s.String()) } //nolint:gosec // see there

// draw draws blocks in the colours of their kinds. In a lane of few, each says what it holds.
func draw(blocks []block, only func(*block) bool) template.HTML {
	const titled, apart = 150, 3 * 100.0 / mostBlocks
	by := map[string]*svg{}
	for i := range blocks {
		b := &blocks[i]
		if !only(b) {
			continue
		}
		class, title, w := kinds[b.Kind].class, "", b.W
		if by[class] == nil {
			by[class] = &svg{}
		}
		if len(blocks) <= titled {
			title = b.said()
		}
		if w >= apart {
			w -= apart / 4
		}
		by[class].rect(b.X, w, "", title)
	}
	var all svg
	for _, class := range []string{"system", "user", "assistant", "call", "result", "replacement"} {
		if by[class] != nil {
			all.WriteString(`<g class="k-` + class + `">` + by[class].String() + "</g>")
		}
	}
	return all.html()
}

// hatch draws the hatch over blocks.
func hatch(blocks []block, only func(*block) bool) template.HTML {
	var s svg
	for i := 0; i < len(blocks); i++ {
		if !only(&blocks[i]) {
			continue
		}
		from := blocks[i].X
		for i+1 < len(blocks) && only(&blocks[i+1]) {
			i++
		}
		s.rect(from, blocks[i].X+blocks[i].W-from, "", "")
	}
	return s.html()
}

// lanes are the drawing of a session at a moment.
type lanes struct {
	Said, Hatch, Seen, Written, Marks, Plumb template.HTML
	Future                                   float64 // where what was not yet said begins
	Head                                     float64 // the moment
	Brackets                                 []bracket
	Rows                                     []laneRow
	Older                                    int // rows that are folded
	Line                                     string
	Levels                                   []level
	Ticks                                    []level
}

// bracket stands over what a summary stands for.
type bracket struct {
	X, W, End float64
	Label     string
}

// level is a value on an axis.
type level struct {
	At    float64
	Class string
	Label string
}

// laneRow is what a run took out of the view, or brought back.
type laneRow struct {
	*moment
	Out, Hatch, Back template.HTML
	Text             string
	At               float64
	Anchor           string
}

// draw draws the lanes at the moment of a page.
func (p *sessionPage) draw(all bool) *lanes {
	l := p.log
	v := &lanes{Head: l.end(p.until), Future: l.end(p.until)}
	blocks := l.blocks(func(q chat.Seq) int {
		switch {
		case q > p.until:
			return notYet
		case p.view.Has(q):
			return inView
		}
		return outOfView
	})
	v.Said = draw(blocks, func(*block) bool { return true })
	v.Hatch = hatch(blocks, func(b *block) bool { return b.State == outOfView })
	v.Seen = draw(blocks, func(b *block) bool { return b.State == inView })
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
	var s svg
	for _, m := range p.moments {
		x := number2(l.end(m.Read))
		s.WriteString(`<line class="runline" x1="` + x + `%" x2="` + x + `%" y1="0" y2="100%"/>`)
	}
	v.Plumb = s.html()
	step := math.Pow(10, math.Floor(math.Log10(math.Max(1, float64(l.total)))))
	for _, f := range []float64{.1, .2, .25, .5, 1} {
		if n := float64(l.total) / (step * f); n <= 6 {
			step *= f
			break
		}
	}
	for t := step; l.total > 0 && t < .86*float64(l.total); t += step {
		v.Ticks = append(v.Ticks, level{At: 100 * t / float64(l.total), Label: short(t)})
	}
	return v
}

// drawRun draws the row of a run.
func (p *sessionPage) drawRun(m *moment) laneRow {
	r := laneRow{moment: m, Anchor: "start"}
	var messages int
	var tokens chat.Tokens
	low, high := 100.0, 0.0
	of, what := m.out, "out"
	if m.Undoes != 0 || len(of) == 0 {
		of, what = m.back, "brought back"
	}
	state := func(q chat.Seq) int {
		if of.Has(q) {
			return outOfView
		}
		return inView
	}
	blocks := p.log.blocks(state)
	taken := func(b *block) bool { return b.State == outOfView }
	for i := range blocks {
		if b := &blocks[i]; taken(b) {
			messages, tokens, low, high = messages+b.Messages, tokens+b.Tokens, min(low, b.X), max(high, b.X+b.W)
		}
	}
	if what == "out" {
		r.Out, r.Hatch = draw(blocks, taken), hatch(blocks, taken)
		r.Text = fmt.Sprintf("%s, %s out", term.Plural(messages, "message", "messages"), short(float64(tokens)))
	} else {
		r.Back = hatch(blocks, taken)
		r.Text = "brought back " + term.Plural(messages, "message", "messages")
	}
	switch {
	case messages == 0 && m.Kind == "erase":
		r.Text = "erased words; the view kept its messages"
	case messages == 0:
		r.Text = "no message that was said"
	}
	if m.UndoneBy != 0 {
		r.Text += fmt.Sprintf(" · undone by %d", m.UndoneBy)
	}
	if r.At = high + .8; messages == 0 {
		r.At = 0
	} else if high > 70 {
		r.At, r.Anchor = low-.8, "end"
		if low < 30 {
			r.Text = ""
		}
	}
	return r
}

// drawWritten draws summaries and replacements that are in the view.
func (p *sessionPage) drawWritten(v *lanes) {
	l, scale := p.log, 100/math.Max(1, float64(p.log.total))
	var s svg
	var x, w float64 // of replacements that touch
	put := func() {
		if w > 0 {
			s.rect(x, w, ` class="k-replacement"`, "")
		}
		w = 0
	}
	for _, i := range p.order {
		q := l.Messages.Seqs[i]
		if !l.written(i) || !p.view.Has(q) {
			continue
		}
		width := float64(l.Messages.Tokens[i]) * scale
		if l.kind(i) == kindReplacement {
			at := l.start(l.Messages.Positions[i])
			if w == 0 || at-x-w > 100.0/mostBlocks {
				put()
				x = at
			}
			w = max(w, at+width-x)
			continue
		}
		covered := p.covers(q)
		b := bracket{X: l.start(l.Messages.Positions[i])}
		if b.End = b.X + width; len(covered) > 0 {
			b.X = min(b.X, l.start(covered[0].Lo))
			b.End = max(b.End, l.end(covered[len(covered)-1].Hi-1))
		}
		b.End = min(b.End, 100)
		b.W = b.End - b.X
		if b.W > 16 {
			b.Label = fmt.Sprintf("summary of run %d: %s for %s", p.writer(q), short(float64(l.Messages.Tokens[i])), short(float64(l.size(covered))))
		}
		v.Brackets = append(v.Brackets, b)
		s.rect(b.X, min(width, b.W), ` class="k-summary"`, "")
	}
	put()
	v.Written = s.html()
}

// drawMarks draws what is pinned, and frames for the messages that a line of a summary rests on.
func (p *sessionPage) drawMarks(v *lanes) {
	l := p.log
	var s svg
	pinned, _ := chat.ParseRanges(l.Pinned) // else none
	for i, r := range pinned {
		if i == mostBlocks {
			break
		}
		s.rect(l.start(r.Lo), max(.2, l.end(min(r.Hi-1, l.LastSeq))-l.start(r.Lo)), ` class="pin" y="32" height="3"`, "pinned")
	}
	seen := map[chat.Seq]bool{}
	for _, r := range p.Rows {
		if r.Summary == nil {
			continue
		}
		for _, line := range r.Summary.Lines {
			for _, q := range line.Seqs {
				if !seen[q] {
					s.rect(l.start(q), max(.24, l.end(q)-l.start(q)), fmt.Sprintf(` class="hl" y="-3" height="36" data-seq="%d"`, q), "")
				}
				seen[q] = true
			}
		}
	}
	v.Marks = s.html()
}

// drawSize draws the size of the view: it grows by what is said, and each run makes it smaller.
func (p *sessionPage) drawSize(v *lanes) {
	l, x := p.log, p.State.Explanation
	top := float64(max(x.Start, x.Target, chat.Tokens(p.State.LiveTokens)))
	for _, m := range p.moments {
		top = math.Max(top, float64(max(m.TokensBefore, m.TokensAfter)))
	}
	if float64(x.Window) < 3*top {
		top = math.Max(top, float64(x.Window))
	}
	top = math.Max(1, top*1.1)
	y := func(t chat.Tokens) float64 { return 100 - 100*float64(t)/top }
	var points []string
	point := func(at float64, t chat.Tokens) { points = append(points, number2(10*at)+","+number2(y(t))) }
	first := chat.Tokens(0)
	if len(p.moments) > 0 && l.More {
		first = max(0, p.moments[0].TokensBefore-l.size(chat.Ranges{{Lo: 1, Hi: p.moments[0].Read + 1}}))
	}
	point(0, first)
	for _, m := range p.moments {
		point(l.end(m.Read), m.TokensBefore)
		point(l.end(m.Read), m.TokensAfter)
	}
	point(100, p.State.LiveTokens)
	v.Line = strings.Join(points, " ")
	for _, of := range []level{{float64(x.Window), "axis", "window"}, {float64(x.Start), "mark-start", "start"}, {float64(x.Target), "mark-target", "target"}} {
		if of.At > 0 && of.At < top {
			v.Levels = append(v.Levels, level{math.Round(92 * (1 - of.At/top)), of.Class, of.Label + " " + short(of.At)})
		}
	}
}

// size returns the tokens of what was said among messages.
func (l *log) size(of chat.Ranges) (n chat.Tokens) {
	for _, r := range of {
		n += chat.Tokens(math.Round((l.end(r.Hi-1) - l.end(r.Lo-1)) * float64(l.total) / 100))
	}
	return n
}
