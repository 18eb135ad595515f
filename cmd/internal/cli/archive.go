package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

type archiveCmd struct {
	Sessions  []string `arg:"" optional:"" name:"session" help:"The sessions; default: all of the tenant."`
	OlderThan string   `placeholder:"TIME" default:"30d" help:"Archive words that have been out of the view for longer than this; default: ${default}."`
	DryRun    bool     `help:"Show what would be archived."`
	age       time.Duration
}

func (c *archiveCmd) Validate() error {
	var err error
	if c.age, err = policy.ParseDuration(c.OlderThan); err != nil || c.age < 0 {
		return fmt.Errorf("--older-than=%s: want a time such as 30d or 12h", c.OlderThan)
	}
	return nil
}

func (c *archiveCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	var total store.ArchiveStats
	var busy int64
	one := func(k store.Key) error {
		call := st.Admin.ArchiveSession
		if c.DryRun {
			call = st.Admin.ArchivePreview
		}
		part, err := call(ctx, k, c.age)
		total.Add(part)
		if errors.Is(err, store.ErrBusy) {
			busy++
			return nil
		}
		return err
	}
	for _, name := range c.Sessions {
		if err := one(key(cfg, name)); err != nil {
			return err
		}
	}
	if len(c.Sessions) == 0 {
		for k, err := range st.Admin.Compacted(ctx, cfg.Tenant) {
			if err == nil {
				err = one(k)
			}
			if err != nil {
				return err
			}
		}
	}
	return e.show(struct {
		store.ArchiveStats
		Busy   int64 `json:"busy_sessions"`
		DryRun bool  `json:"dry_run"`
	}{total, busy, c.DryRun}, func() {
		of := fmt.Sprintf("%s of %s", plural(total.Messages, "message"), plural(total.Sessions, "session"))
		if c.DryRun {
			e.say("would archive %s, which take %s", of, term.Bytes(total.Stored))
		} else {
			e.say("archived %s: %s of rows became %s in %s", of, term.Bytes(total.Stored), term.Bytes(total.Archived),
				plural(total.Segments, "segment"))
		}
		if busy > 0 {
			e.note("%s left out, as another transaction had their lock: repeat the command",
				term.Plural(busy, "session was", "sessions were"))
		}
	})
}

type restoreCmd struct {
	Session string   `arg:"" help:"The session."`
	Message []string `placeholder:"ID" help:"Restore the words of this message alone; may be repeated."`
}

func (c *restoreCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	got, err := st.Admin.Restore(ctx, key(cfg, c.Session), c.Message...)
	if err != nil {
		return err
	}
	if got.Messages == 0 {
		return e.answer(got, "nothing of it is in the archive")
	}
	return e.answer(got, "restored %s of session %s: %s in %s became %s of rows", plural(got.Messages, "message"), term.Clean(c.Session),
		term.Bytes(got.Archived), plural(got.Segments, "segment"), term.Bytes(got.Stored))
}
