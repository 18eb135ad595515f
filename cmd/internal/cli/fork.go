package cli

import (
	"context"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type forkCmd struct {
	Session string `arg:"" help:"The session."`
	New     string `arg:"" help:"The name of the new session."`
	At      string `placeholder:"MESSAGE" help:"Its last message: the id, or the seq that view shows; default: the last one."`
}

func (*forkCmd) Help() string {
	return `Makes a session that goes on from a message of another one, as its child. It has a copy of what was said up to there and of the runs that were applied by then, so its view is the one of that moment, with the summaries and replacements that were in it. The copies can be undone as the runs were. Its next run, which is due at once, checks the view. Summaries keep their ids, by which "summary show" names the run that wrote them.

Examples:

    compactor fork chat-42 chat-42-retry --at msg-17
    compactor fork chat-42 chat-43`
}

func (c *forkCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	messages, err := st.Fork(ctx, key(cfg, c.Session), c.New, c.At)
	if err != nil {
		return err
	}
	row, err := st.Session(ctx, key(cfg, c.New))
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, withStart(cfg, row))
	}
	e.say("session %s has %s of %s, %s in its view", term.Clean(c.New), term.Plural(messages, "message", "messages"), term.Clean(c.Session), term.Count(row.LiveMessages))
	return nil
}
