package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

// wordsWorld holds the content of the sessions of a tenant, and which of it is erased where. Each
// message has words that stand in no other one, unless it quotes that.
type wordsWorld struct {
	s      *Store
	tenant string
	names  []string
	// words holds those that a session has, by session and message id; own are the application's
	// own messages that quote others, which may be erased with these.
	words  map[string]map[string]string
	own    map[string]bool
	erased map[string]map[string]bool // by session and words
	order  map[string]int             // of words, as they were said
	// from is the session that one was forked from.
	from   map[string]string
	purged bool
}

func (w *wordsWorld) key(name string) Key { return Key{Tenant: w.tenant, Session: name} }

func (w *wordsWorld) newSession(name string) {
	w.names = append(w.names, name)
	w.words[name], w.erased[name] = map[string]string{}, map[string]bool{}
}

func (w *wordsWorld) message(role chat.Role) (m NewMessage, words string) {
	n := len(w.order)
	words = fmt.Sprintf("Wort-%s-%d-Ende", w.tenant, n)
	w.order[words] = n
	m = text(fmt.Sprintf("m%d", n), role, "it is said "+words+" here")
	m.SourceID = "from " + words
	return m, words
}

// quotable returns words of a session that are not erased there.
func (w *wordsWorld) quotable(r *rapid.T, name string) []string {
	var all []string
	for id, words := range w.words[name] {
		if !w.erased[name][words] && !w.own[id] {
			all = append(all, words)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return nil
	}
	return []string{rapid.SampledFrom(all).Draw(r, "quoted")}
}

func (w *wordsWorld) append(r *rapid.T, name string) {
	for range rapid.IntRange(1, 4).Draw(r, "messages") {
		m, words := w.message(rapid.SampledFrom([]chat.Role{chat.RoleUser, chat.RoleAssistant}).Draw(r, "role"))
		add(r, w.s, w.key(name), m)
		w.words[name][m.ID] = words
	}
}

// run compacts a session: with a summary or a replacement that quotes, or without.
func (w *wordsWorld) run(r *rapid.T, name string) {
	// An erasure has queued one with options of its own.
	exec(r, w.s, `DELETE FROM compactor.runs WHERE status = 'queued' AND sid = (SELECT sid FROM compactor.sessions WHERE tenant = $1 AND id = $2)`, w.tenant, name)
	c := start(r, w.s, w.key(name))
	views, err := w.s.Operator.ViewMetas(context.Background(), c.Session.SID)
	if err != nil {
		r.Fatalf("view: %v", err)
	}
	plan := chat.Plan{}
	if n := len(views) - 1; n > 0 {
		lo := rapid.IntRange(0, n-1).Draw(r, "lo")
		hi := rapid.IntRange(lo, n-1).Draw(r, "hi")
		var seqs []chat.Seq
		for _, m := range views[lo : hi+1] {
			seqs = append(seqs, m.Seq)
		}
		says := "in short " + strings.Join(w.quotable(r, name), " ")
		switch rapid.IntRange(0, 2).Draw(r, "kind") {
		case 0:
			plan = exclude(chat.RangesOf(seqs...))
		case 1:
			plan = summarize(chat.RangesOf(seqs...), says)
			plan.Additions[0].Position = views[lo].Position
		case 2:
			for _, q := range w.quotable(r, name) { // it is erased with its original, or if it holds all of the text
				says = "in short, it is said " + q + " here"
			}
			plan = replacement(views[lo], says)
		}
	}
	ch, err := c.change(w.s, plan)
	if err == nil {
		_, err = w.s.Worker.Apply(context.Background(), c.Run, c.Fence, ch)
	}
	if err != nil && !errors.Is(err, ErrPurged) {
		r.Fatalf("apply: %v", err)
	}
	if err == nil {
		exec(r, w.s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, prompt_hash, answer, ended_at)
			SELECT 'k' || id, sid, id, 1, 'answered', 'p', $2, now() FROM compactor.runs WHERE id = $1`, c.Run, "answered "+strings.Join(w.quotable(r, name), ""))
	}
}

// replace stores a view with a summary of the application's own, which quotes a message.
func (w *wordsWorld) replace(r *rapid.T, name string) {
	view, revision, err := w.s.View(context.Background(), w.key(name))
	if err != nil {
		r.Fatalf("view: %v", err)
	}
	if len(view) < 2 {
		return
	}
	m, words := w.message(chat.RoleUser)
	for _, q := range w.quotable(r, name) {
		m.Content = chat.TextContent(m.Content.String() + ", after it is said " + q + " here")
	}
	msgs := []NewMessage{m}
	for _, kept := range view[rapid.IntRange(1, len(view)-1).Draw(r, "dropped"):] {
		msgs = append(msgs, NewMessage{Message: kept.Message})
	}
	if _, err := w.s.Replace(context.Background(), w.key(name), revision, msgs, ""); err != nil {
		r.Fatalf("replace: %v", err)
	}
	w.words[name][m.ID], w.own[m.ID] = words, true
}

func (w *wordsWorld) fork(r *rapid.T, name string) {
	fork := fmt.Sprintf("s%d", len(w.names))
	var ids []string
	for id := range w.words[name] {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 0 {
		return
	}
	at := rapid.SampledFrom(ids).Draw(r, "at")
	_, err := w.s.Fork(context.Background(), w.key(name), fork, at)
	if errors.Is(err, ErrPurged) {
		return
	}
	if err != nil {
		r.Fatalf("fork: %v", err)
	}
	w.newSession(fork)
	w.from[fork] = name
	for _, id := range list[string](r, w.s, `SELECT l.id FROM compactor.message_log l JOIN compactor.sessions s USING (sid) WHERE s.tenant = $1 AND s.id = $2 AND kind = 'm'`, w.tenant, fork) {
		words := w.words[name][id]
		w.words[fork][id] = words
		w.erased[fork][words] = w.erased[name][words]
	}
}

// eraseIn notes that words are erased in a session and all that have copies of them below it,
// and above it for a message.
func (w *wordsWorld) eraseIn(name, words string, up bool, seen map[string]bool) {
	if seen[name] || !slices.Contains(slices.Collect(maps.Values(w.words[name])), words) {
		return
	}
	seen[name], w.erased[name][words] = true, true
	for fork, from := range w.from {
		if from == name {
			w.eraseIn(fork, words, up, seen)
		} else if up && fork == name {
			w.eraseIn(from, words, up, seen)
		}
	}
}

func (w *wordsWorld) erase(r *rapid.T, name string) {
	var ids []string
	for id := range w.words[name] {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 0 {
		return
	}
	one := rapid.Bool().Draw(r, "one")
	if one {
		ids = []string{rapid.SampledFrom(ids).Draw(r, "erased")}
	}
	arg := ids
	if !one {
		arg = nil
	}
	dry := must(w.s.Admin.Erase(context.Background(), w.key(name), arg, "why", "by", true))(r)
	done := must(w.s.Admin.Erase(context.Background(), w.key(name), arg, "why", "by", false))(r)
	if dry.Messages != done.Messages || dry.Derived != done.Derived || done.EndedAt.IsZero() {
		r.Fatalf("erased %+v, expected by the dry run: %+v", done, dry)
	}
	for _, id := range ids {
		w.eraseIn(name, w.words[name][id], one, map[string]bool{})
	}
}

func (w *wordsWorld) step(r *rapid.T) {
	ctx := context.Background()
	name := rapid.SampledFrom(w.names).Draw(r, "session")
	k := w.key(name)
	switch rapid.IntRange(0, 13).Draw(r, "step") {
	case 0, 1:
		w.append(r, name)
	case 2, 3:
		w.run(r, name)
	case 4, 5:
		exec(r, w.s, `UPDATE compactor.sessions SET restored_at = NULL WHERE tenant = $1`, w.tenant)
		exec(r, w.s, `UPDATE compactor.runs SET ended_at = ended_at - interval '1 hour' WHERE sid IN (SELECT sid FROM compactor.sessions WHERE tenant = $1)`, w.tenant)
		must(w.s.Admin.ArchiveSession(ctx, k, time.Minute))(r)
	case 6:
		var some []string
		if rapid.Bool().Draw(r, "some") {
			some = append(some, rapid.SampledFrom(slices.Sorted(maps.Keys(w.words[name]))).Draw(r, "restored"))
		}
		if _, err := w.s.Admin.Restore(ctx, k, some...); err != nil && !errors.Is(err, ErrPurged) {
			r.Fatalf("restore: %v", err)
		}
	case 7, 8:
		w.erase(r, name)
	case 9:
		w.fork(r, name)
	case 10:
		parent := append([]string{""}, w.names...)[rapid.IntRange(0, len(w.names)).Draw(r, "parent")]
		if err := w.s.SetParent(ctx, k, parent); err != nil && !errors.Is(err, ErrInvalid) {
			r.Fatalf("set parent: %v", err)
		}
	case 11:
		w.replace(r, name)
	case 12:
		runs := must(w.s.Operator.Runs(ctx, RunFilter{Key: k, Status: "applied", Limit: 5}))(r)
		if len(runs) > 0 {
			if _, err := w.s.Undo(ctx, k, runs[rapid.IntRange(0, len(runs)-1).Draw(r, "run")].ID, rapid.Bool().Draw(r, "cascade"), ""); err != nil &&
				!errors.Is(err, ErrNotApplicable) && !errors.Is(err, ErrInUse) && !errors.Is(err, ErrPurged) {
				r.Fatalf("undo: %v", err)
			}
		}
	case 13:
		switch rapid.IntRange(0, 5).Draw(r, "rare") {
		case 0:
			w.purged = exec(r, w.s, `UPDATE compactor.archive_segments SET data = NULL, purged_at = now(), purged_after = '0'
				WHERE data IS NOT NULL AND sid = (SELECT sid FROM compactor.sessions WHERE tenant = $1 AND id = $2)`, w.tenant, name) > 0 || w.purged
		case 1:
			eraseTenant(r, w.s, w.tenant)
			for _, n := range w.names {
				for _, words := range w.words[n] {
					w.erased[n][words] = true
				}
			}
		}
	}
}

// check compares all that is stored with the content that is erased and the content that is not.
func (w *wordsWorld) check(r *rapid.T) {
	ctx := context.Background()
	everywhere := map[string]bool{} // words of which no session has a copy that is not erased
	for _, n := range w.names {
		for _, words := range w.words[n] {
			if _, seen := everywhere[words]; !seen {
				everywhere[words] = true
			}
			everywhere[words] = everywhere[words] && w.erased[n][words]
		}
	}
	dump := strings.Join(w.dump(r), "\n")
	for words, gone := range everywhere {
		if i := strings.Index(dump, words); gone && i >= 0 {
			r.Fatalf("%s is erased and stands in\n%s", words, dump[strings.LastIndex(dump[:i], "\n")+1:][:min(1000, len(dump)-i)])
		}
	}
	for _, n := range w.names {
		k := w.key(n)
		sid := one[int64](r, w.s, `SELECT sid FROM compactor.sessions WHERE tenant = $1 AND id = $2`, w.tenant, n)
		check := func(when string) {
			all := must(w.s.All(ctx, k))(r)
			log := list[string](r, w.s, `SELECT l::text FROM compactor.message_log l WHERE sid = $1`, sid)
			found := strings.Join(log, "\n")
			byID := map[string]Stored{}
			for _, m := range all {
				byID[m.ID] = m
				found += "\n" + string(m.AppendJSON(nil))
			}
			for id, words := range w.words[n] {
				m := byID[id]
				switch has := strings.Contains(m.Content.String(), words); {
				case w.erased[n][words] && strings.Contains(found, words):
					r.Fatalf("%s: %s is erased in %s and is there", when, words, n)
				case w.erased[n][words], has, m.Purged && w.purged, w.own[id] && m.Content.String() == "[erased]":
				default:
					r.Fatalf("%s: %s of %s is not erased and is %s", when, words, n, m.AppendJSON(nil))
				}
			}
		}
		check("as it is")
		if _, err := w.s.Admin.Restore(ctx, k); err != nil && !errors.Is(err, ErrPurged) {
			r.Fatalf("restore %s: %v", n, err)
		}
		check("restored")
		for _, f := range must(w.s.Admin.AuditSession(ctx, k))(r).Findings {
			if !strings.Contains(f.Want, "as the last message of the user") {
				r.Fatalf("audit: %s", f)
			}
		}
	}
}

// dump returns all rows of all tables with content of the tenant, as text, and the content of segments of
// the archive.
func (w *wordsWorld) dump(r *rapid.T) (rows []string) {
	for _, table := range list[string](r, w.s, `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = 'compactor' AND c.relkind IN ('r', 'm')`) {
		for _, row := range list[string](r, w.s, `SELECT t::text FROM `+table+` t WHERE strpos(t::text, $1) > 0`, "Wort-"+w.tenant+"-") {
			rows = append(rows, table+": "+row)
		}
	}
	for _, data := range list[[]byte](r, w.s, `SELECT data FROM compactor.archive_segments a LEFT JOIN compactor.sessions s USING (sid)
			WHERE data IS NOT NULL AND coalesce(s.tenant, $1) = $1`, w.tenant) {
		raw, err := zstdReader.DecodeAll(data, nil)
		if err != nil {
			r.Fatalf("%v", err)
		}
		rows = append(rows, "archive_segments: "+string(raw))
	}
	return rows
}

func TestErasedWordsAreNowhereWhateverCameBefore(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1 << 30, 0, false, Counts{}})
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		w := &wordsWorld{
			s: s, tenant: fmt.Sprintf("t%d", n), words: map[string]map[string]string{}, own: map[string]bool{}, erased: map[string]map[string]bool{},
			order: map[string]int{}, from: map[string]string{},
		}
		w.newSession("s0")
		w.append(r, "s0")
		for range rapid.IntRange(5, 25).Draw(r, "steps") {
			w.step(r)
		}
		w.check(r)
	})
}
