package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

const (
	stormWriters  = 3   // of an installation
	stormSessions = 6   // of a writer, at a time
	stormLength   = 400 // messages, after which a writer begins another session
)

var (
	stormTenants = []string{"acme", "globex"}
	stormModels  = []string{"gpt-4o", "gpt-4.1", "claude-sonnet-4-5", "claude-fable-5-1", "some-model"}
)

var stormSteps = []store.Step{
	{Strategy: "truncation"},
	{Strategy: "tool_result"},
	{Strategy: "handoff"},
	{Strategy: "keep_last_n_messages", Params: map[string]any{"n": 5}},
	{Strategy: "compact_tool_results"},
	{Strategy: "prune_tool_results"},
	{Strategy: "preserve_user_messages"},
}

// stormSession is a conversation with what was acknowledged of it. One writer writes to it.
type stormSession struct {
	key   store.Key
	owner string // stands in each text
	n     int    // messages that were made
	turn  int

	mu       sync.Mutex
	said     map[chat.Seq]chat.Message
	ids      []string
	lastUser chat.Seq
	signs    bool     // its assistant signs its reasoning
	replaced chat.Seq // up to here the application has replaced the view, which may lack the last user message
	// erased holds the ids of the messages whose erasure was asked for, and whether it was
	// acknowledged.
	erased map[string]bool
}

// newSession begins a conversation.
func (in *installation) newSession() *stormSession {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := len(in.sessions)
	tenant := stormTenants[n%len(stormTenants)]
	s := &stormSession{
		key: store.Key{Tenant: tenant, Session: fmt.Sprintf("chat-%d", n)}, owner: fmt.Sprintf("OWNER_%s_%s_", in.schema, tenant),
		said: map[chat.Seq]chat.Message{}, erased: map[string]bool{}, signs: n%3 == 0,
	}
	in.sessions = append(in.sessions, s)
	return s
}

// recent picks a session that is written to, or was a short time ago.
func (in *installation) recent(r *rand.Rand) *stormSession {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := min(len(in.sessions), 2*stormWriters*stormSessions)
	return in.sessions[len(in.sessions)-1-r.IntN(n)]
}

// note notes what was acknowledged.
func (s *stormSession) note(seqs []chat.Seq, msgs []store.NewMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, q := range seqs {
		s.said[q] = msgs[i].Message
		if msgs[i].ID != "" {
			s.ids = append(s.ids, msgs[i].ID)
		}
		if msgs[i].Role == chat.RoleUser {
			s.lastUser = q
		}
	}
}

func (s *stormSession) id(r *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) == 0 {
		return "none"
	}
	return s.ids[r.IntN(len(s.ids))]
}

// next makes the next messages: turns with tools as agents write them, and some faults.
func (s *stormSession) next(r *rand.Rand) []store.NewMessage {
	var out []store.NewMessage
	add := func(m chat.Message) {
		s.n++
		m.ID = fmt.Sprintf("%s-%d", s.key.Session, s.n)
		m.Content = chat.TextContent(m.Content.String() + s.token(m.ID))
		if m.Role == chat.RoleAssistant && s.signs {
			m = sessiontest.Sign(m, r.IntN(sessiontest.SignedForms), s.n)
		}
		n := store.NewMessage{Message: m}
		if r.IntN(4) > 0 {
			n.Tokens, n.Counter = chat.Tokens(len(m.Content.Text)/4+20), "test"
		}
		out = append(out, n)
	}
	text := func(format string, args ...any) chat.Content {
		return chat.TextContent(s.owner + fmt.Sprintf(format, args...))
	}
	if s.n == 0 {
		add(chat.Message{Role: chat.RoleSystem, Content: text("You work on tickets.")})
	}
	s.turn++
	add(chat.Message{Role: chat.RoleUser, Content: text("Please find out why ticket TK%dX4 fails in src/part_%d/main.go.", 1000+s.turn, s.turn)})
	for range r.IntN(3) {
		call := chat.Message{Role: chat.RoleAssistant, Content: text("I look at it.")}
		calls := 1 + r.IntN(2)
		for i := range calls {
			call.ToolCalls = append(call.ToolCalls, chat.ToolCall{
				ID: fmt.Sprintf("call_%d_%d", s.n, i), Type: "function", Name: "read_file", Arguments: fmt.Sprintf(`{"path":"src/part_%d/main.go"}`, s.turn),
			})
		}
		if r.IntN(30) == 0 {
			calls-- // a call without a result
		}
		add(call)
		for i := range calls {
			add(chat.Message{Role: chat.RoleTool, ToolCallID: call.ToolCalls[i].ID, Content: text("%s", strings.Repeat("func handle(r request) error\n", 5+r.IntN(60)))})
		}
		if r.IntN(30) == 0 {
			add(chat.Message{Role: chat.RoleTool, ToolCallID: "call_unknown", Content: text("a result without a call")})
		}
	}
	if r.IntN(8) > 0 {
		add(chat.Message{Role: chat.RoleAssistant, Content: text("Ticket TK%dX4: it forgot to close the connection; that is fixed.", 1000+s.turn)})
	}
	return out
}

// transient reports whether an error may come while servers and processes die.
func transient(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrBusy) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// write appends to the sessions of a writer, each batch until it is acknowledged. A session
// that is long enough is followed by a new one, so that a storm of any length does the same.
func (in *installation) write(ctx context.Context, r *rand.Rand, mine []*stormSession) {
	for ctx.Err() == nil {
		i := r.IntN(len(mine))
		if mine[i].n >= stormLength {
			mine[i] = in.newSession()
		}
		s := mine[i]
		in.append(r, s, s.next(r))
		_ = backoff.Wait(ctx, time.Duration(r.IntN(40))*time.Millisecond)
	}
}

func (in *installation) append(r *rand.Rand, s *stormSession, msgs []store.NewMessage) {
	ctx := context.WithoutCancel(in.t.Context())
	model := stormModels[r.IntN(len(stormModels))]
	way, once := r.IntN(5), fmt.Sprintf("batch-%d", s.n)
	if way == 0 { // without ids, under one key for the batch
		for i := range msgs {
			msgs[i].ID = ""
		}
	}
	for deadline := time.Now().Add(stormQuiet); ; {
		var seqs []chat.Seq
		var err error
		switch way {
		case 0:
			seqs, _, err = in.store.AppendOnce(ctx, s.key, model, once, msgs)
		case 1:
			seqs, err = in.appendSQL(ctx, s, model, msgs)
		default:
			seqs, _, err = in.store.Append(ctx, s.key, model, msgs)
		}
		switch {
		case err == nil && len(seqs) == len(msgs):
			s.note(seqs, msgs)
			in.counted.add("appends")
			if r.IntN(4) == 0 {
				in.read(ctx, s)
			}
			return
		case err == nil:
			in.t.Errorf("%s: append to %s: %d seqs for %d messages", in.schema, s.key, len(seqs), len(msgs))
			return
		case !transient(err) || time.Now().After(deadline):
			in.t.Errorf("%s: append to %s: %v", in.schema, s.key, err)
			return
		}
		in.counted.add("appends repeated")
		_ = backoff.Wait(ctx, 20*time.Millisecond)
	}
}

// appendSQL is an application without Go: one statement on a connection of its own.
func (in *installation) appendSQL(ctx context.Context, s *stormSession, model string, msgs []store.NewMessage) (seqs []chat.Seq, err error) {
	plain := make([]chat.Message, len(msgs))
	for i := range msgs {
		plain[i] = msgs[i].Message
	}
	raw, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	err = in.pool.QueryRow(ctx, in.q(`SELECT @schema@.append($1, $2, $3::text, $4)`), s.key.Tenant, s.key.Session, string(raw), model).Scan(&seqs)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err) // to be repeated; the deadline ends it
	}
	return seqs, nil
}

// read checks that a view has the last user message, as no other writer writes to it.
func (in *installation) read(ctx context.Context, s *stormSession) {
	view, _, err := in.store.View(ctx, s.key)
	if err != nil {
		if !transient(err) {
			in.t.Errorf("%s: view of %s: %v", in.schema, s.key, err)
		}
		return
	}
	in.counted.add("reads")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range view {
		if m.Seq == s.lastUser {
			return
		}
	}
	if s.lastUser > s.replaced {
		in.t.Errorf("%s: the last user message of %s, #%d, is not in its view", in.schema, s.key, s.lastUser)
	}
}

// lastWords ends each session with a message, so that all views are looked at again.
func (in *installation) lastWords() {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range in.sessions {
		s.n++
		in.append(r, s, []store.NewMessage{{Message: chat.Message{
			ID: fmt.Sprintf("%s-%d", s.key.Session, s.n), Role: chat.RoleUser, Content: chat.TextContent(s.owner + "Thank you."),
		}}})
	}
}

// operate does what operators and applications do beside writing.
func (in *installation) operate(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		s := in.recent(r)
		what, err := in.operation(ctx, r, s)
		switch {
		case err == nil:
			in.counted.add(what)
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrNotApplicable), errors.Is(err, store.ErrInUse), errors.Is(err, store.ErrStale):
			in.counted.add(what + " refused")
		case !transient(err):
			in.t.Errorf("%s: %s of %s: %v", in.schema, what, s.key, err)
		}
		_ = backoff.Wait(ctx, time.Duration(r.IntN(150))*time.Millisecond)
	}
}

func (in *installation) operation(ctx context.Context, r *rand.Rand, s *stormSession) (what string, err error) {
	switch r.IntN(14) {
	case 0, 1:
		o := store.Options{From: []string{"", "log", "view"}[r.IntN(3)], DryRun: r.IntN(5) == 0, AllowGrowth: r.IntN(5) == 0}
		if r.IntN(3) == 0 {
			o.Pipeline = []store.Step{stormSteps[r.IntN(len(stormSteps))]}
		}
		run, err := in.store.Request(ctx, s.key, []string{store.TriggerOperator, store.TriggerApplication}[r.IntN(2)], "storm", o)
		if err != nil || r.IntN(3) > 0 {
			return "request", err
		}
		begin := time.Now()
		wait, cancel := context.WithTimeout(ctx, stormQuiet)
		defer cancel()
		if _, err = in.store.WaitRun(wait, run); time.Since(begin) >= stormQuiet {
			row, rerr := in.store.Run(context.WithoutCancel(ctx), run)
			in.t.Errorf("%s: run %d did not end within %v: %+v %v", in.schema, run, stormQuiet, row, rerr)
		}
		return "wait", err
	case 2, 3:
		runs, err := in.store.Operator.Runs(ctx, store.RunFilter{Key: s.key, Status: "applied", Limit: 5})
		if err != nil || len(runs) == 0 {
			return "undo", err
		}
		_, err = in.store.Undo(ctx, s.key, runs[r.IntN(len(runs))].ID, r.IntN(2) == 0, "storm")
		return "undo", err
	case 4:
		return "pin", in.store.Pin(ctx, s.key, s.id(r))
	case 5:
		return "unpin", in.store.Unpin(ctx, s.key, s.id(r))
	case 6:
		s.mu.Lock()
		last := len(s.said)
		s.mu.Unlock()
		_, err := in.store.ReportUsage(ctx, s.key, chat.Tokens(r.IntN(6000)), chat.Seq(r.IntN(last+1)))
		return "usage report", err
	case 7:
		return "model change", in.store.SetModel(ctx, s.key, stormModels[r.IntN(len(stormModels))])
	case 8, 9:
		if r.IntN(4) == 0 {
			_, err := in.store.Admin.Restore(ctx, s.key)
			return "restore", err
		}
		return in.archive(ctx, s.key)
	case 10:
		if r.IntN(2) > 0 {
			return "erasure left out", nil
		}
		return "erasure", in.erase(ctx, r, s)
	case 12, 13:
		return in.treat(ctx, r)
	default:
		return "replace", in.replace(ctx, r, s)
	}
}

// erase erases the words of a message.
func (in *installation) erase(ctx context.Context, r *rand.Rand, s *stormSession) error {
	id := s.id(r)
	s.mu.Lock()
	if !s.erased[id] {
		s.erased[id] = false // before, as the answer may be lost
	}
	s.mu.Unlock()
	_, err := in.store.Admin.Erase(ctx, s.key, []string{id}, "storm", "storm", false)
	if err == nil {
		s.mu.Lock()
		s.erased[id] = true
		s.mu.Unlock()
	}
	return err
}

// replace stores a view that an application has compacted: without some messages at its front.
func (in *installation) replace(ctx context.Context, r *rand.Rand, s *stormSession) error {
	view, revision, err := in.store.View(ctx, s.key)
	if err != nil || len(view) < 4 {
		return err
	}
	msgs := make([]store.NewMessage, 0, len(view))
	for _, m := range view[1+r.IntN(len(view)/2):] {
		msgs = append(msgs, store.NewMessage{Message: m.Message})
	}
	s.mu.Lock()
	s.replaced = max(s.replaced, view[len(view)-1].Seq) // before, as the answer may be lost
	s.mu.Unlock()
	_, err = in.store.ReplaceSeen(ctx, s.key, revision, view[len(view)-1].Seq, msgs, "storm")
	return err
}
