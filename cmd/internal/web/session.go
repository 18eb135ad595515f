package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
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
	// listRows are the rows of the list at once, listText the characters of a message in it, and wholeText those in the
	// inspector.
	listRows, listText, wholeText = 60, 400, 20_000
	// listLines are the lines of a summary that the list shows.
	listLines = 14
)

// sessionPage is a session at a moment: now, or after a run.
type sessionPage struct {
	ID    string
	Part  string // of the page that is asked for; "" for all
	Name  string // the first request
	State api.SessionState
	Lanes *lanes
	// Run is the one whose moment it is; nil for now. Back and Next are the moments before and after, as ?run=.
	Run        *moment
	Back, Next *string
	Number     int // of the moment, from 1
	Of         int
	Tokens     chat.Tokens // of the view at the moment
	InView     int
	Show       string // which messages are listed: "" those in the view, said or out
	Rows       []row
	After      int // the row before the next page; 0 for none
	Found      []row
	FoundNext  string
	Query      string
	Inspected  *inspector
	Texts      bool
	Micros     int64
	InForce    int
	Undo       store.RunID // the latest run in force
	Since      *moment     // the latest run

	log     *log
	moments []moment
	order   []int // the messages as a view orders them
	view    chat.Ranges
	until   chat.Seq
	covered map[chat.Seq]chat.Ranges
	// summaries are those in the view.
	summaries []chat.Seq
}

// Title names the page.
func (p *sessionPage) Title() string { return term.Truncate(term.Clean(cmp.Or(p.Name, p.ID)), 80) }

// Log returns the timeline, nil for a part that needs none.
func (p *sessionPage) Log() *log { return p.log }

// Total returns the tokens said.
func (p *sessionPage) Total() chat.Tokens { return p.log.total }

// moment is a run that changed the view.
type moment struct {
	store.TimelineRun
	UndoneBy         store.RunID
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
	Mono, Cut              bool
	Out                    bool // at the moment
	HasPin                 bool
}

// gap are messages that the list leaves out, behind one another.
type gap struct {
	From, To chat.Seq
	State    int
	Messages int
	Tokens   chat.Tokens
	What     string
	Bars     []level
	Runs     []store.RunID
	Summary  chat.Seq // in their place
	counts   [len(letters)]int
	sizes    [len(letters)]chat.Tokens
}

// summaryRow is a summary in the list or the inspector.
type summaryRow struct {
	reports.Summary
	Messages int64
	Lines    []summaryLine
	More     int
}

// summaryLine is a line of a summary with the messages that it rests on.
type summaryLine struct {
	N    int
	Head bool
	Text string
	Seqs []chat.Seq
}

// Rests returns the messages as an attribute.
func (l summaryLine) Rests() string { return strings.Trim(fmt.Sprint(l.Seqs), "[]") }

// inspector shows a message, or a line of a summary with its sources.
type inspector struct {
	Line     *summaryLine
	Summary  *summaryRow
	Messages []message
	Run      *store.RunRow // that took the message out
	LivesOn  []*summaryRow // with the lines that rest on it
}

func session(q *request) (any, error) {
	p := &sessionPage{ID: q.param("id"), Part: q.param("part"), Show: q.param("show"), Query: q.param("q"), Texts: !q.HideTexts || q.param("texts") == "1"}
	if p.ID == "" {
		return nil, &api.Problem{Status: http.StatusNotFound, Code: "no_such_session", Detail: "The address names no session: see the list of sessions."}
	}
	if err := p.inspect(q); err != nil || p.Part == "inspector" {
		return p, err
	}
	var t store.Timeline
	if err := q.get(&t, api.Path("sessions", p.ID, "timeline")); err != nil {
		return nil, err
	}
	p.log = newLog(t)
	if err := p.at(q.param("run")); err != nil {
		return nil, err
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
	return p, p.name(q)
}

// at sets the moment: a run, or now.
func (p *sessionPage) at(run string) error {
	id, err := strconv.ParseInt(cmp.Or(run, "0"), 10, 64)
	view, until, ok := p.log.At(store.RunID(id))
	if err != nil || !ok {
		return &api.Problem{Status: http.StatusNotFound, Code: "no_such_moment", Detail: "Run " + run + " is not among the latest runs that changed the view of this session."}
	}
	p.view, p.until, p.covered = view, until, map[chat.Seq]chat.Ranges{}
	for _, r := range p.log.Runs {
		m := moment{TimelineRun: r}
		m.out, _ = chat.ParseRanges(r.Out) // as At has read them
		m.back, _ = chat.ParseRanges(r.Back)
		m.wrote, _ = chat.ParseRanges(r.Wrote)
		p.moments = append(p.moments, m)
		p.Micros += r.CostMicros
	}
	revisions := map[store.RunID]int64{}
	for i := range p.moments {
		m := &p.moments[i]
		revisions[m.ID] = m.Revision
		for j := range p.moments[:i] {
			if o := &p.moments[j]; m.Undoes != 0 && o.Revision >= revisions[m.Undoes] && !o.InForce && o.Kind != "undo" && o.UndoneBy == 0 {
				o.UndoneBy = m.ID
			}
		}
	}
	p.Of, p.Number = len(p.moments)+1, len(p.moments)+1
	address := func(i int) *string {
		if i < 0 || i > len(p.moments) {
			return nil
		}
		to := ""
		if i < len(p.moments) {
			to = fmt.Sprint(p.moments[i].ID)
		}
		return &to
	}
	for i := range p.moments {
		m := &p.moments[i]
		if m.ID == store.RunID(id) {
			p.Run, p.Number, p.Tokens = m, i+1, m.TokensAfter
		}
		if p.Since = m; m.InForce && m.Kind != "undo" && m.Kind != "erase" {
			p.InForce++
			p.Undo = m.ID
		}
	}
	p.Back, p.Next = address(p.Number-2), address(p.Number)
	m := p.log.Messages
	for i, q := range m.Seqs {
		p.order = append(p.order, i)
		if p.view.Has(q) {
			p.InView++
			if p.log.kind(i) == kindSummary {
				p.summaries = append(p.summaries, q)
			}
		}
	}
	rank := func(i int) int {
		switch {
		case p.log.kind(i) == kindSummary:
			return 0
		case !p.log.written(i) && m.Positions[i] != m.Seqs[i]:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(p.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.Positions[a], m.Positions[b]), cmp.Compare(rank(a), rank(b)))
	})
	return nil
}

// covers returns what a summary stands for, also through others.
func (p *sessionPage) covers(q chat.Seq) chat.Ranges {
	if found, ok := p.covered[q]; ok {
		return found
	}
	p.covered[q] = nil
	all, _ := chat.ParseRanges(p.log.Messages.Covers[q]) // else nothing
	for _, x := range all {
		for i, _ := slices.BinarySearch(p.log.writes, x.Lo); i < len(p.log.writes) && p.log.writes[i] < x.Hi; i++ {
			all = all.Union(p.covers(p.log.writes[i]))
		}
	}
	p.covered[q] = all
	return all
}

// writer returns the run that wrote a message; 0 for none that is known.
func (p *sessionPage) writer(q chat.Seq) store.RunID {
	for i := range p.moments {
		if p.moments[i].wrote.Has(q) {
			return p.moments[i].ID
		}
	}
	return 0
}

// name reads the first request of the user, which is the name of the session.
func (p *sessionPage) name(q *request) error {
	first := strings.IndexByte(p.log.Messages.Kinds, 'u')
	if first < 0 || !p.Texts {
		return nil
	}
	msgs, err := p.read(q, chat.RangesOf(p.log.Messages.Seqs[first]))
	if err == nil && len(msgs) > 0 && !msgs[0].Purged {
		p.Name, _, _ = strings.Cut(strings.TrimSpace(textOf(&msgs[0])), "\n")
	}
	return err
}

// read reads messages, in the order of a view.
func (p *sessionPage) read(q *request, seqs chat.Ranges) (msgs []store.MessageRow, err error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	var page struct{ Items []store.MessageRow }
	err = q.get(&page, api.Path("sessions", p.ID, "messages"), "seqs", seqs.String())
	return page.Items, err
}

// textOf returns the words of a message: what it says, and its calls.
func textOf(r *store.MessageRow) string {
	var m chat.Message
	if json.Unmarshal(r.Message, &m) != nil {
		return ""
	}
	parts := []string{m.Content.String()}
	for _, c := range m.ToolCalls {
		parts = append(parts, c.Name+" "+c.Arguments)
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}

// shown returns a message as it is shown, with at most so many characters.
func (p *sessionPage) shown(r store.MessageRow, kind, most int) message {
	m := message{MessageRow: r, Class: kinds[kind].class, Out: !r.Included, HasPin: r.Pinned}
	m.Mono = m.Class == "call" || m.Class == "result"
	m.Who = strings.TrimPrefix(strings.TrimPrefix(kinds[kind].one, "message by the "), "message ")
	switch {
	case r.Purged:
		m.Note = "Its words were archived and are not kept any more."
	case !p.Texts:
		m.Note = "Texts are hidden."
	default:
		m.Text = textOf(&r)
		if cut := []rune(m.Text); len(cut) > most {
			m.Text, m.Cut = string(cut[:most]), true
		}
		if m.Text == "" {
			m.Note = "It has no text."
		}
	}
	return m
}

// kindOf returns the kind of a message that was read.
func kindOf(r *store.MessageRow) int {
	letter := byte('o')
	switch {
	case r.Kind == chat.KindSummary:
		letter = 'M'
	case r.Kind == chat.KindReplacement:
		letter = 'R'
	case r.Role == chat.RoleSystem, r.Role == chat.RoleDeveloper:
		letter = 's'
	case r.Role == chat.RoleUser:
		letter = 'u'
	case r.Role == chat.RoleTool, r.Role == chat.RoleFunction:
		letter = 't'
	case r.Role == chat.RoleAssistant:
		letter = 'a'
		var m chat.Message
		if json.Unmarshal(r.Message, &m) == nil && len(m.ToolCalls) > 0 {
			letter = 'c'
		}
	}
	return strings.IndexByte(letters, letter)
}

// list sets the rows of the page: what is in the view and between it, or what a search finds.
func (p *sessionPage) list(q *request) error {
	after, _ := strconv.Atoi(q.param("after")) // else the first
	if p.Query != "" {
		var found struct {
			Items []api.FoundMessage
			Next  string
		}
		err := q.get(&found, api.Path("sessions", p.ID, "messages"), "q", p.Query, "limit", "30", "after", q.param("after"))
		for _, f := range found.Items {
			m := p.shown(f.MessageRow, kindOf(&f.MessageRow), listText)
			if m.Out = !p.view.Has(f.Seq); p.Texts {
				m.Text = f.Snippet
			}
			p.Found = append(p.Found, row{Message: &m})
		}
		p.FoundNext = found.Next
		return err
	}
	rows, want := p.rows()
	if seq, err := strconv.ParseInt(q.param("at"), 10, 64); err == nil && after == 0 {
		after = max(0, slices.IndexFunc(rows, func(r row) bool {
			return r.Message != nil && r.Message.Seq >= chat.Seq(seq) || r.Gap != nil && r.Gap.To >= chat.Seq(seq)
		}))
	}
	if after = min(max(0, after), len(rows)); len(rows) > after+listRows {
		p.After = after + listRows
		rows = rows[:p.After]
	}
	rows = rows[after:]
	var seqs []chat.Seq
	for _, r := range rows {
		if r.Message != nil {
			seqs = append(seqs, r.Message.Seq)
		}
	}
	msgs, err := p.read(q, chat.RangesOf(seqs...))
	if err != nil {
		return err
	}
	read := make(map[chat.Seq]*store.MessageRow, len(msgs))
	for i := range msgs {
		read[msgs[i].Seq] = &msgs[i]
	}
	for i := range rows {
		m := rows[i].Message
		if m == nil || read[m.Seq] == nil {
			continue
		}
		seq, kind := m.Seq, p.log.kind(want[m.Seq])
		shown := p.shown(*read[seq], kind, listText)
		shown.Out = !p.view.Has(seq)
		if rows[i].Message = &shown; kind == kindSummary {
			if rows[i].Summary, err = p.summary(q, shown.ID); err != nil {
				return err
			}
			rows[i].Message = nil
		}
	}
	p.Rows = rows
	return nil
}

// rows returns the rows of the whole list, without words, and the places of the messages in it.
func (p *sessionPage) rows() (rows []row, want map[chat.Seq]int) {
	l := p.log
	want = map[chat.Seq]int{}
	by := make([]store.RunID, len(l.Messages.Seqs)) // the run that took it out
	runs := p.moments[:min(p.Number, len(p.moments))]
	for i := range runs {
		for _, x := range runs[i].out {
			from, _ := slices.BinarySearch(l.Messages.Seqs, x.Lo)
			for j := from; j < len(by) && l.Messages.Seqs[j] < x.Hi; j++ {
				by[j] = runs[i].ID
			}
		}
	}
	replaced := map[chat.Seq]bool{}
	for _, i := range p.order {
		if l.kind(i) == kindReplacement && p.view.Has(l.Messages.Seqs[i]) {
			replaced[l.Messages.Positions[i]] = true
		}
	}
	var open *gap
	close := func() {
		if open != nil {
			rows = append(rows, row{Gap: open.finish()})
		}
		open = nil
	}
	tail, next := chat.Seq(0), 0
	if n := len(p.view); n > 0 && p.view[n-1].Lo > 1 {
		tail = p.view[n-1].Lo
	}
	for _, i := range p.order {
		seq, in := l.Messages.Seqs[i], p.view.Has(l.Messages.Seqs[i])
		if seq > p.until || !in && (l.written(i) || replaced[seq] && p.Show == "") {
			continue
		}
		for !l.written(i) && next < len(runs) && seq > runs[next].Read {
			close()
			rows = append(rows, row{Run: &runs[next]})
			next++
		}
		if seq == tail && in && p.Show == "" {
			close()
			rows = append(rows, row{Tail: true})
		}
		if in && p.Show != "out" || !in && p.Show != "" {
			close()
			rows = append(rows, row{Message: &message{MessageRow: store.MessageRow{Seq: seq}}})
			want[seq] = i
			continue
		}
		state := outOfView
		if in {
			state = inView
		}
		if open == nil {
			open = &gap{From: seq, State: state}
			for _, w := range p.summaries {
				if p.covers(w).Has(seq) {
					open.Summary = w
				}
			}
		}
		open.add(seq, l.kind(i), l.Messages.Tokens[i], by[i])
	}
	close()
	for ; next < len(runs); next++ {
		rows = append(rows, row{Run: &runs[next]})
	}
	return rows, want
}

func (g *gap) add(seq chat.Seq, kind int, tokens chat.Tokens, run store.RunID) {
	g.To, g.Messages, g.Tokens = seq, g.Messages+1, g.Tokens+tokens
	g.counts[kind]++
	g.sizes[kind] += tokens
	if g.State == outOfView && run != 0 && !slices.Contains(g.Runs, run) && len(g.Runs) < 4 {
		g.Runs = append(g.Runs, run)
	}
}

// finish sets what a gap shows.
func (g *gap) finish() *gap {
	g.What = counted(g.counts)
	x := 0.0
	for _, k := range []int{4, 5, kindUser, 3, 1, 0, kindSummary, kindReplacement} {
		if w := 100 * float64(g.sizes[k]) / float64(max(1, g.Tokens)); w > 0 {
			g.Bars = append(g.Bars, level{At: x, Class: kinds[k].class, Label: number2(w)})
			x += w
		}
	}
	return g
}

// linkTags matches the links at the end of a line of a stored summary.
var linkTags = regexp.MustCompile(`(\s*\[m\d+[^\]]*\])+\s*$`)

// summary reads a summary with its lines.
func (p *sessionPage) summary(q *request, id string) (*summaryRow, error) {
	s := &summaryRow{}
	if err := q.get(&s.Summary, api.Path("summaries", id), "session", p.ID); err != nil {
		return nil, err
	}
	covers, _ := chat.ParseRanges(s.SummaryOf) // else none
	if s.Messages = covers.Len(); p.log != nil {
		s.Messages = 0
		for i, q := range p.log.Messages.Seqs {
			if !p.log.written(i) && p.covers(s.Seq).Has(q) {
				s.Messages++
			}
		}
	}
	if !p.Texts {
		return s, nil
	}
	links := map[int][]chat.Seq{}
	for _, l := range s.Links {
		links[l.Line] = l.Seqs
	}
	for n, text := range strings.Split(s.Prose, "\n") {
		line := summaryLine{N: n, Seqs: links[n], Text: strings.TrimSpace(linkTags.ReplaceAllString(text, ""))}
		if head := strings.TrimLeft(line.Text, "#"); head != line.Text {
			line.Head, line.Text = true, strings.TrimSpace(head)
		}
		if line.Text = strings.TrimPrefix(line.Text, "- "); line.Text != "" {
			s.Lines = append(s.Lines, line)
		}
	}
	if p.Part != "inspector" && q.param("lines") != "all" && len(s.Lines) > listLines+4 {
		s.More = len(s.Lines) - listLines
		s.Lines = s.Lines[:listLines]
	}
	return s, nil
}

// inspect sets the inspector: ?message=12, or ?summary=summary-12-7&line=3.
func (p *sessionPage) inspect(q *request) error {
	if seq := q.param("message"); seq != "" {
		var d api.MessageDetail
		if err := q.get(&d, api.Path("sessions", p.ID, "messages", seq)); err != nil {
			return err
		}
		x := &inspector{Run: d.Run, Messages: []message{p.shown(d.Message, kindOf(&d.Message), wholeText)}}
		for _, c := range d.CoveredBy {
			s, err := p.whole(q, c.ID)
			if err != nil {
				return err
			}
			s.Lines = slices.DeleteFunc(s.Lines, func(l summaryLine) bool { return !slices.Contains(l.Seqs, d.Message.Seq) })
			x.LivesOn = append(x.LivesOn, s)
		}
		p.Inspected = x
		return nil
	}
	id := q.param("summary")
	if id == "" {
		return nil
	}
	s, err := p.whole(q, id)
	if err != nil {
		return err
	}
	x := &inspector{Summary: s}
	n, err := strconv.Atoi(q.param("line"))
	if i := slices.IndexFunc(s.Lines, func(l summaryLine) bool { return err == nil && l.N == n }); i >= 0 {
		x.Line = &s.Lines[i]
		msgs, err := p.read(q, chat.RangesOf(x.Line.Seqs...))
		if err != nil {
			return err
		}
		for _, m := range msgs {
			x.Messages = append(x.Messages, p.shown(m, kindOf(&m), wholeText/len(msgs)))
		}
	}
	p.Inspected = x
	return nil
}

// whole reads a summary with all its lines.
func (p *sessionPage) whole(q *request, id string) (*summaryRow, error) {
	part := p.Part
	p.Part = "inspector"
	s, err := p.summary(q, id)
	p.Part = part
	return s, err
}

// Is returns the state of the session in a word, and Why the reason for it.
func (p *sessionPage) Is() string {
	s := p.State
	for _, h := range s.Explanation.HeldBack {
		if h.Code == "running" || h.Code == "queued" {
			return h.Code
		}
	}
	switch {
	case s.State != "active":
		return s.State
	case s.Due && len(s.Explanation.HeldBack) > 0:
		return "held"
	case s.Due:
		return "due"
	}
	return "not_due"
}

// Top returns what the end of the size bar stands for: the window or, without one, the largest value.
func (p *sessionPage) Top() chat.Tokens {
	x := p.State.Explanation
	return max(1, x.Window, x.Start, x.Tokens)
}
