package cli

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// eraseCmd holds the commands that erase words.
type eraseCmd struct {
	Message eraseMessageCmd `cmd:"" help:"Erase messages of a session, and their copies in forks."`
	Session eraseSessionCmd `cmd:"" help:"Erase all messages of a session, with its labels and its metadata."`
	Tenant  eraseTenantCmd  `cmd:"" help:"Ask for the erasure of all sessions of the tenant (--tenant)."`
	Confirm eraseConfirmCmd `cmd:"" help:"Confirm the erasure of the tenant and do it, or go on with it."`
	List    eraseListCmd    `cmd:"" help:"List the latest erasures of the tenant."`
}

// eraseFlags are those of commands that erase.
type eraseFlags struct {
	Note string `required:"" help:"Why, for the record."`
	confirmFlags
}

// run erases messages of a session, or all with no ids, after a preview.
func (f eraseFlags) run(ctx context.Context, e *Env, st *store.Store, k store.Key, ids []string) error {
	found, err := st.Admin.Erase(ctx, k, ids, f.Note, e.by(), true)
	if err != nil {
		return err
	}
	preview := map[string]any{"dry_run": true, "preview": found.Preview()}
	ok, err := f.agreed(e, 1, "Erase them for good?", preview, func() {
		e.say("would erase: %s", erasedText(found))
		sayRepeats(e, found)
	})
	if err != nil || !ok {
		return err
	}
	done, err := st.Admin.EraseShown(ctx, k, ids, f.Note, e.by(), found.Preview().Token)
	if err != nil {
		return err
	}
	return e.show(done, func() {
		e.say("erased: %s", erasedText(done))
		if left := leftRepeats(done); left > 0 {
			e.note("left: %s words of them, or may: see above; erase message SESSION MESSAGE erases them",
				term.Plural(left, "message that holds", "messages that hold"))
		}
	})
}

func leftRepeats(x store.Erasure) (n int) {
	for _, r := range x.Repeats {
		if !r.Erased {
			n++
		}
	}
	return n
}

// sayRepeats lists the later messages that hold erased words, or may, up to maxListed of a kind.
func sayRepeats(e *Env, x store.Erasure) {
	counts := map[string]int{}
	for _, r := range x.Repeats {
		what := "would be left, as words of them stand in it"
		switch {
		case r.Erased:
			what = "would be erased too, as the application stored it with a replacement of the view and words of them stand in it"
		case r.Replaced:
			what = "would be left, as the application stored it with a replacement of the view: it may repeat them in words of its own"
		}
		if counts[what]++; counts[what] <= maxListed {
			e.say("message %s of session %s: %s", term.Clean(r.Message), term.Clean(r.Session), what)
		}
	}
	for what, n := range counts {
		if n > maxListed {
			e.say("%s: %s more, which --json lists", what, term.Count(n-maxListed))
		}
	}
}

func erasedText(x store.Erasure) string {
	return fmt.Sprintf("%s, %s and %s in %s", plural(x.Messages, "message"),
		term.Plural(x.Derived, "summary or replacement", "summaries and replacements"),
		term.Plural(x.Answers, "stored answer", "stored answers"), plural(x.Sessions, "session"))
}

type eraseMessageCmd struct {
	Session string   `arg:"" help:"The session."`
	IDs     []string `arg:"" name:"message" help:"The ids of messages, as view --json shows them."`
	eraseFlags
}

func (c *eraseMessageCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	return c.run(ctx, e, st, key(cfg, c.Session), c.IDs)
}

type eraseSessionCmd struct {
	Session string `arg:"" help:"The session."`
	eraseFlags
}

func (c *eraseSessionCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	return c.run(ctx, e, st, key(cfg, c.Session), nil)
}

type eraseTenantCmd struct {
	Note string `required:"" help:"Why, for the record."`
}

func (c *eraseTenantCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	x, err := st.Admin.RequestErasure(ctx, cfg.Tenant, c.Note, e.by())
	if err != nil {
		return err
	}
	return e.answer(x, "erasure %d of tenant %s (%s, %s) is recorded, and nothing is erased yet\nwithin 7 days, `compactor erase confirm %[1]d --tenant %[2]s%[5]s` erases it for good",
		x.ID, term.Clean(x.Tenant), plural(x.Sessions, "session"), plural(x.Messages, "message"), e.at())
}

type eraseConfirmCmd struct {
	ID  int64 `arg:"" name:"number" help:"The number that erase tenant showed."`
	Yes bool  `help:"Do not ask."`
}

func (c *eraseConfirmCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	x, err := st.Admin.Erasure(ctx, c.ID)
	if err != nil {
		return err
	}
	if x.ConfirmedAt.IsZero() {
		question := fmt.Sprintf("Erase the %s with %s of tenant %s for good?", plural(x.Sessions, "session"),
			plural(x.Messages, "message"), term.Clean(cfg.Tenant))
		if ok, err := (confirmFlags{Yes: c.Yes}).confirmed(e, 1, question); err != nil || !ok {
			return err
		}
	}
	if x, err = st.Admin.ConfirmErasure(ctx, c.ID, cfg.Tenant, e.by()); err != nil {
		return err
	}
	progress := e.Err.Progress(fmt.Sprintf("erasure %d, sessions", x.ID), 0)
	for x.EndedAt.IsZero() {
		before := x.Sessions
		if x, err = st.Admin.NextErasure(ctx, c.ID, cfg.Tenant); err != nil {
			progress.Done("")
			return fmt.Errorf("%w; `compactor erase confirm %d --tenant %s%s` goes on", err, c.ID, cfg.Tenant, e.at())
		}
		progress.Add(x.Sessions - before)
	}
	progress.Done("")
	return e.answer(x, "erased: %s", erasedText(x))
}

type eraseListCmd struct {
	Limit int `default:"20" range:"1," help:"How many."`
}

func (c *eraseListCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	rows, err := st.Admin.Erasures(ctx, cfg.Tenant, c.Limit)
	switch {
	case err != nil:
		return err
	case e.JSON:
		return e.json(append([]store.Erasure{}, rows...))
	}
	return list(e, "erasures", rows, "no erasures of tenant "+cfg.Tenant, columns[store.Erasure]{
		{"id", term.ID("ERASURE"), nil},
		{"requested_at", term.Text("REQUESTED"), nil},
		{"requested_by", term.Text("BY"), nil},
		{"session", term.Text("OF"), func(x store.Erasure) any {
			switch {
			case x.Session == "":
				return "the tenant"
			case len(x.IDs) > 0:
				return term.Plural(int64(len(x.IDs)), "message", "messages") + " of " + x.Session
			}
			return "session " + x.Session
		}},
		{"messages_erased", term.Num("MESSAGES"), nil},
		{"ended_at", term.Text("STATUS"), func(x store.Erasure) any {
			switch {
			case x.ConfirmedAt.IsZero():
				return "to be confirmed"
			case x.EndedAt.IsZero():
				return "under way"
			}
			return "done"
		}},
		{"note", term.Text("NOTE"), nil},
	})
}
