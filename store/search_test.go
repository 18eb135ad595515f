package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// found returns what a search finds, in calls of its own for each page: seqs, and snippets if they are wanted.
func found(t *testing.T, s *Store, k Key, f SearchFilter) (out []string) {
	t.Helper()
	for range 1000 {
		page, next := must2(s.Reader.Search(t.Context(), k, f))(t)
		for _, m := range page {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s", m.Seq, m.Snippet)))
		}
		if next == 0 {
			return out
		}
		if f.Newest {
			f.Before = next
		} else {
			f.After = next
		}
	}
	t.Fatal("a search has no end")
	return nil
}

// Excluded and archived messages, results of tools and summaries are found, by any part of their text.
func TestSearchFindsWhatWasSaid(t *testing.T) {
	s, k := freshSession(t)
	say := call("c1", "k1")
	say.ToolCalls[0].Arguments = `{"path":"src/app/main.go"}`
	add(t, s, k,
		user("m1", "Mail Ann.Lee@example.com, please:\n\tthe retry   budget"), say, result("r1", say.ToolCalls[0].ID, `v1.2.3-rc at "/etc/app.d"`),
		assistant("m4", "ÄRGER, and İstanbul"), user("m5", "and then?"))
	apply(t, s, k, summarize(span(1, 3), "A summary about the retry budget."))
	longAgo(t, s)
	if got := must(s.Admin.ArchiveSession(t.Context(), k, month))(t); got.Messages != 3 {
		t.Fatalf("%d messages are archived", got.Messages)
	}
	for query, want := range map[string][]string{
		"ann.lee@EXAMPLE": {"1 Mail Ann.Lee@example.com, please: the retry budget"},
		"retry budget":    {"1 Mail Ann.Lee@example.com, please: the retry budget", "6 A summary about the retry budget."},
		"app/main.go":     {`2 look({"path":"src/app/main.go"})`},
		`"/etc/app.d"`:    {`3 v1.2.3-rc at "/etc/app.d"`},
		"1.2.3":           {`3 v1.2.3-rc at "/etc/app.d"`},
		"ärger":           {"4 ÄRGER, and İstanbul"},
		"role":            nil, // a key of the stored form
		".*":              nil,
	} {
		noDiff(t, cmp.Diff(want, found(t, s, k, SearchFilter{Text: query, Limit: 5})), "%s", query)
	}
	for name, tt := range map[string]struct {
		f    SearchFilter
		want []string
	}{
		"all":        {SearchFilter{Limit: 2}, []string{"1", "2", "3", "4", "5", "6"}},
		"newest":     {SearchFilter{Limit: 4, Newest: true}, []string{"6", "5", "4", "3", "2", "1"}},
		"tool":       {SearchFilter{Limit: 1, Tool: "look"}, []string{"2", "3"}},
		"role":       {SearchFilter{Limit: 1, Role: chat.RoleUser}, []string{"1", "5", "6"}},
		"summaries":  {SearchFilter{Limit: 9, Kinds: []chat.Kind{chat.KindSummary}}, []string{"6"}},
		"between":    {SearchFilter{Limit: 1, After: 2, Before: 5}, []string{"3", "4"}},
		"of no rows": {SearchFilter{}, nil},
		"of no hits": {SearchFilter{Text: "a"}, nil},
	} {
		noDiff(t, cmp.Diff(tt.want, found(t, s, k, tt.f)), "%s", name)
	}
	m := must2(s.Reader.Search(t.Context(), k, SearchFilter{Limit: 1}))
	first, _ := m(t)
	if first[0].Included || first[0].SummarizedBy == "" || first[0].ID != "m1" {
		t.Errorf("%+v", first[0])
	}
	covering := must(s.Reader.Covering(t.Context(), k, 2))(t)
	if len(covering) != 1 || covering[0].ID != first[0].SummarizedBy {
		t.Errorf("in the place of message 2: %+v", covering)
	}
	_, _, err := s.Reader.Search(t.Context(), Key{Session: "none"}, SearchFilter{Limit: 1})
	wantError(t, err, ErrNotFound, "search of no session")
	_, err = s.Reader.Message(t.Context(), k, 7)
	wantError(t, err, ErrNotFound, "message 7")
}

// Where ids of calls repeat, a result is one of the tool whose call of the id is the nearest before it.
func TestSearchFindsResultsByTheirTool(t *testing.T) {
	s, k := freshSession(t)
	named := func(id, tool string) NewMessage {
		m := call(id, "k")
		m.ToolCalls[0].Name = tool
		return m
	}
	large := counted(named("c3", "list"), searchTokens) // more than is held at a time
	add(t, s, k, named("c1", "look"), result("r1", "k", "a"), named("c2", "write"), result("r2", "k", "b"), large, result("r3", "k", "c"))
	for tool, want := range map[string][]string{"look": {"1", "2"}, "write": {"3", "4"}, "list": {"5", "6"}, "other": nil} {
		noDiff(t, cmp.Diff(want, found(t, s, k, SearchFilter{Tool: tool, Limit: 9})), "%s", tool)
	}
}

// A search reads so much in a call and no more, and says where the next one begins.
func TestSearchIsBounded(t *testing.T) {
	s, k := freshSession(t)
	var msgs []NewMessage
	for i := range 9000 {
		m := user(fmt.Sprintf("m%d", i), "x")
		if i%1000 == 999 {
			m = counted(user(m.ID, "needle "+strings.Repeat("y", 100)), 200_000)
		}
		msgs = append(msgs, m)
	}
	for part := range slices.Chunk(msgs, 1000) {
		add(t, s, k, part...)
	}
	page, next := must2(s.Reader.Search(t.Context(), k, SearchFilter{Text: "needle", Limit: 50}))(t)
	if len(page) != 4 || next != searchBatches*searchRows {
		t.Errorf("found %d messages up to %d", len(page), next)
	}
	if got := found(t, s, k, SearchFilter{Text: "needle", Limit: 50, Newest: true}); len(got) != 9 {
		t.Errorf("found %d messages", len(got))
	}
	if page, next = must2(s.Reader.Search(t.Context(), k, SearchFilter{Role: chat.RoleTool, Limit: 50}))(t); len(page) != 0 || next != 0 {
		t.Errorf("found %d messages up to %d", len(page), next)
	}
	if got := found(t, s, k, SearchFilter{Limit: 700}); len(got) != 9000 {
		t.Errorf("found %d messages", len(got))
	}
	// Two messages of a million tokens are never in memory together.
	other := Key{Session: "large"}
	add(t, s, other, counted(user("a", "x"), 200_000), counted(user("b", "x"), 200_000), counted(user("c", "x"), 200_000))
	if page, next = must2(s.Reader.Search(t.Context(), other, SearchFilter{Limit: 9}))(t); len(page) != 3 || next != 0 {
		t.Errorf("found %d messages up to %d", len(page), next)
	}
}

// A page of messages costs what it holds, not what the log holds.
func TestMessagesAreReadByTheirSeqs(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, talk("m", 40)...)
	apply(t, s, k, summarize(span(2, 11), "one"))
	apply(t, s, k, exclude(span(13, 20)))
	all := must(s.All(t.Context(), k))(t)
	for _, seqs := range []chat.Ranges{span(1, 3), span(10, 14), {{Lo: 1, Hi: 2}, {Lo: 19, Hi: 22}}, span(40, 99), nil} {
		want := slices.DeleteFunc(slices.Clone(all), func(m Stored) bool { return !seqs.Has(m.Seq) })
		noDiff(t, cmp.Diff(want, must(s.Among(t.Context(), k, seqs))(t), cmp.Comparer(func(a, b chat.Message) bool { return a.ID == b.ID && a.Content.String() == b.Content.String() })), "%s", seqs)
	}
}

func TestSessionsAreFiltered(t *testing.T) {
	s := fresh(t)
	for i, id := range []string{"Mail-a", "mail-b", "chat"} {
		add(t, s, Key{Session: id}, talk("m", 1+i)...)
	}
	noError(t, s.SetLabels(t.Context(), Key{Session: "Mail-a"}, map[string]string{"team": "x", "tier": "1"}))
	noError(t, s.SetParent(t.Context(), Key{Session: "chat"}, "Mail-a"))
	noError(t, s.SetModel(t.Context(), Key{Session: "mail-b"}, "gpt-4o"))
	exec(t, s, `UPDATE compactor.sessions SET state = 'quarantined', quarantine_reason = 'too large' WHERE id = 'mail-b'`)
	exec(t, s, `UPDATE compactor.sessions SET due = true, due_since = now(), policy = 'support' WHERE id = 'chat'`)
	exec(t, s, `UPDATE compactor.sessions SET cooldown_until = now() + interval '1 hour' WHERE id = 'Mail-a'`) // and is not due
	for want, f := range map[string]SessionFilter{
		"Mail-a,mail-b": {Text: "MAIL"},
		"mail-b":        {Model: "gpt-4o"},
		"Mail-a,chat":   {Labels: map[string]string{"team": "x"}},
		"Mail-a":        {Labels: map[string]string{"team": "x", "tier": "1"}, Text: "mail"},
		"chat":          {Policy: "support", Due: true},
		"mail-b,":       {Held: StateQuarantined},
		"mail-b,,":      {Quarantined: true},
		"chat,":         {Held: HeldNoLeader},
		"":              {Held: CodePaused},
		",,":            {Held: "cooldown"},
		",":             {Tenant: "other", Text: "mail"},
	} {
		f.Limit = 9
		var got []string
		for _, r := range sessions(t, s, f) {
			got = append(got, r.Session)
		}
		equal(t, strings.TrimRight(want, ","), strings.Join(got, ","), "%+v", f)
	}
	rows, next, err := s.Operator.Sessions(t.Context(), SessionFilter{Text: "mail", Limit: 1})
	noError(t, err)
	rest := sessions(t, s, SessionFilter{Text: "mail", Limit: 9, After: next})
	if len(rows) != 1 || len(rest) != 1 || rest[0].Session != "mail-b" {
		t.Errorf("%+v, then %+v", rows, rest)
	}
}

// An undo with cascade is previewed exactly, with what it would take from the archive, and changes nothing.
func TestAnUndoIsPreviewed(t *testing.T) {
	s, k := freshArchived(t)
	runs := list[RunID](t, s, `SELECT id FROM compactor.runs WHERE status = 'applied' ORDER BY id`)
	sid := session(t, s, k).SID
	before, seen := rowsOf(t, s, sid), session(t, s, k)
	p := must(s.Reader.PreviewUndo(t.Context(), k, runs[0]))(t)
	if rowsOf(t, s, sid) != before || session(t, s, k).Revision != seen.Revision {
		t.Error("a preview has changed something")
	}
	undo := must(s.Run(t.Context(), must(s.Undo(t.Context(), k, runs[0], true, "t"))(t)))(t)
	equal(t, undo.MessagesAfter, p.MessagesAfter, "messages")
	equal(t, undo.TokensAfter, p.TokensAfter, "tokens")
	noDiff(t, cmp.Diff([]RunID{runs[2], runs[1]}, p.Later), "later runs")
	if p.Restores != 8 && p.Restores == 0 {
		t.Errorf("restores %d messages", p.Restores)
	}
	noDiff(t, cmp.Diff(p.Diff, must(s.Reader.Diff(t.Context(), undo.ID))(t)), "the change")
	_, err := s.Reader.PreviewUndo(t.Context(), k, runs[0])
	wantError(t, err, ErrNotApplicable, "a run that was undone")
}

func TestTheChangeOfARunIsShown(t *testing.T) {
	s, k := freshSession(t)
	add(t, s, k, talk("m", 12)...)
	p := summarize(span(2, 5), "what was said")
	p.Exclude = []chat.Exclusion{{Reason: "truncated", Seqs: span(1, 1)}}
	run := apply(t, s, k, p)
	d := must(s.Reader.Diff(t.Context(), run))(t)
	got := []string{}
	for _, o := range d.Out {
		got = append(got, fmt.Sprintf("%s %s %d %t", o.Reason, o.Seqs, o.Messages, o.SummarizedBy != ""))
	}
	slices.Sort(got)
	noDiff(t, cmp.Diff([]string{p.Additions[0].Reason + " {[2,6)} 4 true", "truncated {[1,2)} 1 false"}, got), "out")
	if len(d.In) != 0 || d.Stays.Seqs != "{[6,13)}" || d.Stays.Messages != 7 || len(d.Wrote) != 1 || d.Wrote[0].Kind != chat.KindSummary {
		t.Errorf("%+v", d)
	}
}
