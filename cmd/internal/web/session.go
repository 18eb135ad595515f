package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

var sessionPages = []page{{"session", "session", "sessions", "Session", session}}

const (
	// listRows are the rows of the list at once, listText the characters of a message in it, wholeText those in the
	// inspector, and listLines the lines of a summary in the list.
	listRows, listText, wholeText, listLines = 60, 400, 20_000, 14
)

// sessionPage is a session at a moment: now, or after a run.
type sessionPage struct {
	ID, Part    string // Part of the page that is asked for; "" for all
	Name        string // the first request
	Texts       bool
	State       api.SessionState
	Log         *timeline
	Lanes       *lanes
	Run         *moment // whose moment it is; nil for now
	Back, Next  *string // the moments before and after, as ?run=
	Number      int     // of the moment, from 1
	InView      int     // messages
	Tokens      chat.Tokens
	Show, Query string // which messages are listed: "" those in the view, said or out; or those that are found
	Rows        []row
	More        string // where the list goes on
	Inspected   *inspector
	Micros      int64
	InForce     int
	Undo, Since *moment // the latest run in force, and the latest

	moments   []moment
	order     []int
	view      chat.Ranges
	until     chat.Seq
	tail      chat.Seq                 // behind which all that was said is in the view; 0 if nothing is out before it
	summaries map[chat.Seq]chat.Ranges // in the view, with the messages that they stand for
}

// moment is a run that changed the view.
type moment struct {
	store.TimelineRun
	out, back, wrote chat.Ranges
}

// row is a row of the list.
type row struct {
	Message *message
	Gap     *gap
	Run     *moment
	Summary *summaryRow
	Tail    bool
}

// message is a message as it is shown.
type message struct {
	store.MessageRow
	Class, Who, Text, Note string
	Cut, Out               bool // Out of the view at the moment
	kind                   int
}

// gap are messages behind one another that the list leaves out.
type gap struct {
	From, To chat.Seq
	Out      bool
	Bars     []level
	Runs     []store.RunID // that took them out
	Summary  chat.Seq      // in their place
	tally
}

// summaryRow is a summary with the lines that are shown.
type summaryRow struct {
	reports.Summary
	Messages int64
	Shown    []reports.SummaryLine
	More     int
}

// inspector shows a message, or a line of a summary with its sources.
type inspector struct {
	Line     *reports.SummaryLine
	Messages []message
	LivesOn  []*summaryRow // with the lines that rest on the message
}

// ranges returns a set of messages, of an answer.
func ranges(s string) chat.Ranges {
	r, _ := chat.ParseRanges(s) // as the store has written it
	return r
}

// Title names the page.
func (p *sessionPage) Title() string { return term.Truncate(term.Clean(cmp.Or(p.Name, p.ID)), 80) }

func session(q *request) (any, error) {
	p := &sessionPage{ID: q.param("id"), Part: q.param("part"), Show: q.param("show"), Query: q.param("q"), Texts: q.texts()}
	if p.ID == "" {
		return nil, &api.Problem{Status: http.StatusNotFound, Code: "no_such_session", Detail: "The address names no session."}
	}
	var t store.Timeline
	if err := q.get(&t, api.Path("sessions", p.ID, "timeline")); err != nil {
		return nil, err
	}
	p.Log = &timeline{t}
	if err := p.at(q.param("run")); err != nil {
		return nil, err
	}
	if err := p.inspect(q); err != nil || p.Part == "inspector" {
		return p, err
	}
	if err := p.list(q); err != nil || p.Part == "rows" {
		return p, err
	}
	if err := q.get(&p.State, api.Path("sessions", p.ID)); err != nil {
		return nil, err
	}
	if p.Run == nil {
		p.Tokens = p.State.LiveTokens
	}
	p.Lanes = p.draw(q.param("runs") == "all")
	first := strings.IndexByte(t.Messages.Kinds, 'u')
	if first < 0 || !p.Texts {
		return p, nil
	}
	msgs, err := p.read(q, chat.RangesOf(t.Messages.Seqs[first]), listText)
	if len(msgs) > 0 {
		p.Name, _, _ = strings.Cut(msgs[0].Text, "\n")
	}
	return p, err
}

// at sets the moment: a run, or now.
func (p *sessionPage) at(run string) error {
	id, err := strconv.ParseInt(cmp.Or(run, "0"), 10, 64)
	ok := false
	if p.view, p.until, ok = p.Log.At(id); err != nil || !ok {
		return &api.Problem{
			Status: http.StatusNotFound, Code: "no_such_moment",
			Detail: "Run " + run + " is not among the latest runs that changed the view of this session.",
		}
	}
	p.tail = p.Log.tail(p.view, p.until)
	addresses := []string{}
	for _, r := range p.Log.Runs {
		p.moments = append(p.moments, moment{r, ranges(r.Out), ranges(r.Back), ranges(r.Wrote)})
		addresses = append(addresses, strconv.FormatInt(r.ID, 10))
		p.Micros += r.CostMicros
	}
	p.Number = len(addresses) + 1
	for i := range p.moments {
		m := &p.moments[i]
		if m.ID == id {
			p.Run, p.Number, p.Tokens = m, i+1, m.TokensAfter
		}
		if p.Since = m; m.InForce && m.Undoes == 0 && m.Kind != "erase" {
			p.InForce++
			p.Undo = m
		}
	}
	if addresses = append(addresses, ""); p.Number > 1 {
		p.Back = &addresses[p.Number-2]
	}
	if p.Number < len(addresses) {
		p.Next = &addresses[p.Number]
	}
	p.order, p.summaries = p.Log.Order(), map[chat.Seq]chat.Ranges{}
	for i, q := range p.Log.Messages.Seqs {
		if !p.view.Has(q) {
			continue
		}
		if p.InView++; p.Log.kind(i) == kindSummary {
			p.summaries[q] = p.Log.Covered(q)
		}
	}
	return nil
}

// read reads messages, in the order of a view, with at most so many characters of each.
func (p *sessionPage) read(q *request, seqs chat.Ranges, most int) (msgs []message, err error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	var page struct{ Items []store.MessageRow }
	err = q.get(&page, api.Path("sessions", p.ID, "messages"), "seqs", seqs.String())
	for _, r := range page.Items {
		msgs = append(msgs, p.shown(r, most))
	}
	return msgs, err
}

// shown returns a message as it is shown at the moment.
func (p *sessionPage) shown(r store.MessageRow, most int) message {
	m := newMessage(r, p.Texts, most)
	m.Out = !p.view.Has(r.Seq)
	return m
}

// newMessage returns a message as it is shown, with at most so many characters.
func newMessage(r store.MessageRow, texts bool, most int) message {
	m := message{MessageRow: r}
	var said chat.Message
	err := json.Unmarshal(r.Message, &said)
	switch {
	case r.Kind == chat.KindSummary:
		m.kind = kindSummary
	case r.Kind == chat.KindReplacement:
		m.kind = kindReplacement
	case len(said.ToolCalls) > 0:
		m.kind = kindCall
	default:
		m.kind = kindOf(r.Role)
	}
	m.Class, m.Who = kinds[m.kind].class, kinds[m.kind].one
	switch {
	case !texts:
		m.Note = "Texts are hidden."
	case r.Purged:
		m.Note = "Its words were archived and are not kept any more."
	case err != nil:
		m.Note = "It cannot be read."
	default:
		parts := []string{said.Content.String()}
		for _, c := range said.ToolCalls {
			parts = append(parts, c.Name+" "+c.Arguments)
		}
		m.Text = strings.TrimSpace(strings.Join(parts, "\n"))
		if m.Text == "" {
			m.Note = "It has no text."
		}
		if cut := []rune(m.Text); len(cut) > most {
			m.Text, m.Cut = string(cut[:most])+"…", true
		}
	}
	return m
}

// search sets the rows to those that a search finds.
func (p *sessionPage) search(q *request) error {
	var found struct {
		Items []api.FoundMessage
		Next  string
	}
	err := q.get(&found, api.Path("sessions", p.ID, "messages"), "q", p.Query, "limit", strconv.Itoa(listRows), "after", q.param("after"))
	for _, f := range found.Items {
		m := p.shown(f.MessageRow, listText)
		if m.Text != "" {
			m.Text = f.Snippet
		}
		p.Rows = append(p.Rows, row{Message: &m})
	}
	p.More = found.Next
	return err
}

// list sets the rows of the page, with words.
func (p *sessionPage) list(q *request) error {
	if p.Query != "" {
		return p.search(q)
	}
	rows := p.rows()
	after, err := strconv.Atoi(q.param("after"))
	if seq, none := strconv.ParseInt(q.param("at"), 10, 64); err != nil && none == nil {
		after = slices.IndexFunc(rows, func(r row) bool {
			return r.Message != nil && r.Message.Seq >= chat.Seq(seq) || r.Gap != nil && r.Gap.To >= chat.Seq(seq)
		})
	}
	if after = min(max(0, after), len(rows)); len(rows) > after+listRows {
		p.More = strconv.Itoa(after + listRows)
		rows = rows[:after+listRows]
	}
	p.Rows = rows[after:]
	var seqs []chat.Seq
	for _, r := range p.Rows {
		if r.Message != nil {
			seqs = append(seqs, r.Message.Seq)
		}
	}
	msgs, err := p.read(q, chat.RangesOf(seqs...), listText)
	read := make(map[chat.Seq]*message, len(msgs))
	for i := range msgs {
		read[msgs[i].Seq] = &msgs[i]
	}
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Message == nil || err != nil {
			continue
		}
		if r.Message = read[r.Message.Seq]; r.Message != nil && r.Message.kind == kindSummary {
			if r.Summary, err = p.summary(q, r.Message.ID); err == nil && len(r.Summary.Shown) > listLines+4 &&
				q.param("lines") != "all" {
				r.Summary.More = len(r.Summary.Shown) - listLines
				r.Summary.Shown = r.Summary.Shown[:listLines]
			}
		}
	}
	return err
}

// rows returns the rows of the whole list, without words.
func (p *sessionPage) rows() (rows []row) {
	l := p.Log
	runs := p.moments[:min(p.Number, len(p.moments))]
	by := make([]store.RunID, len(l.Messages.Seqs)) // the run that took it out
	for _, m := range runs {
		for _, x := range m.out {
			for i := l.place(x.Lo-1) + 1; i < len(by) && l.Messages.Seqs[i] < x.Hi; i++ {
				by[i] = m.ID
			}
		}
	}
	replaced := map[chat.Seq]bool{}
	for i, q := range l.Messages.Seqs {
		if l.kind(i) == kindReplacement && p.view.Has(q) {
			replaced[l.Messages.Positions[i]] = true
		}
	}
	var open *gap
	add := func(r row) {
		if open != nil {
			rows = append(rows, row{Gap: open.finish()})
		}
		rows, open = append(rows, r), nil
	}
	for _, i := range p.order {
		seq, in := l.Messages.Seqs[i], p.view.Has(l.Messages.Seqs[i])
		if seq > p.until || !in && (l.written(i) || replaced[seq] && p.Show == "") {
			continue
		}
		for ; !l.written(i) && len(runs) > 0 && seq > runs[0].Read; runs = runs[1:] {
			add(row{Run: &runs[0]})
		}
		if seq == p.tail && p.Show == "" {
			add(row{Tail: true})
		}
		if in && p.Show != "out" || !in && p.Show != "" {
			add(row{Message: &message{MessageRow: store.MessageRow{Seq: seq}}})
			continue
		}
		if open == nil {
			open = &gap{From: seq, Out: !in}
			for s, covered := range p.summaries {
				if covered.Has(seq) {
					open.Summary = s
				}
			}
		}
		t := l.tally(i)
		open.add(&t)
		if open.To = seq; !in && by[i] != 0 && !slices.Contains(open.Runs, by[i]) && len(open.Runs) < 4 {
			open.Runs = append(open.Runs, by[i])
		}
	}
	for i := range runs {
		add(row{Run: &runs[i]})
	}
	if open != nil {
		rows = append(rows, row{Gap: open.finish()})
	}
	return rows
}

// finish sets the bar of a gap.
func (g *gap) finish() *gap {
	x := 0.0
	for _, k := range []int{
		kindSystem, kindOther, kindUser, kindAssistant, kindCall, kindResult, kindSummary, kindReplacement,
	} {
		if w := 100 * float64(g.sizes[k]) / float64(max(1, g.Tokens)); w > 0 {
			g.Bars = append(g.Bars, level{At: x, X: w, Class: kinds[k].class})
			x += w
		}
	}
	return g
}

// summary reads a summary with its lines.
func (p *sessionPage) summary(q *request, id string) (*summaryRow, error) {
	s := &summaryRow{}
	err := q.get(&s.Summary, api.Path("summaries", id), "session", p.ID)
	covered := p.Log.Covered(s.Seq)
	for i, q := range p.Log.Messages.Seqs {
		if !p.Log.written(i) && covered.Has(q) {
			s.Messages++
		}
	}
	if p.Texts {
		s.Shown = s.Lines()
	}
	return s, err
}

// inspect sets the inspector: ?message=12, or ?summary=summary-12-7&line=3.
func (p *sessionPage) inspect(q *request) error {
	if id := q.param("summary"); id != "" {
		s, err := p.summary(q, id)
		i := slices.IndexFunc(s.Shown, func(l reports.SummaryLine) bool { return strconv.Itoa(l.Line) == q.param("line") })
		if err != nil || i < 0 {
			return err
		}
		p.Inspected = &inspector{Line: &s.Shown[i]}
		p.Inspected.Messages, err = p.read(q, chat.RangesOf(s.Shown[i].Seqs...), wholeText/8)
		return err
	}
	seq := q.param("message")
	if seq == "" {
		return nil
	}
	var d api.MessageDetail
	if err := q.get(&d, api.Path("sessions", p.ID, "messages", seq)); err != nil {
		return err
	}
	p.Inspected = &inspector{Messages: []message{p.shown(d.Message, wholeText)}}
	for _, c := range d.CoveredBy {
		s, err := p.summary(q, c.ID)
		if err != nil {
			return err
		}
		s.Shown = slices.DeleteFunc(s.Shown, func(l reports.SummaryLine) bool { return !slices.Contains(l.Seqs, d.Message.Seq) })
		p.Inspected.LivesOn = append(p.Inspected.LivesOn, s)
	}
	return nil
}

// Is returns the state of the session in a word.
func (p *sessionPage) Is() string {
	held := p.State.Explanation.HeldBack
	for _, h := range held {
		if h.Code == "running" || h.Code == "queued" {
			return h.Code
		}
	}
	switch {
	case p.State.State != "active":
		return p.State.State
	case p.State.Due && len(held) > 0:
		return "held"
	case p.State.Due:
		return "due"
	}
	return "not_due"
}

// Top returns the value at the end of the size bar: the window or, without one, the largest value.
func (p *sessionPage) Top() chat.Tokens {
	x := p.State.Explanation
	return max(1, x.Window, x.Start, x.Tokens)
}
