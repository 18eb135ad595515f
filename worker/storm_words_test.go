package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/sessionstore/compactor/store"
)

// stormFork is a session that was forked, of which nobody writes more.
type stormFork struct {
	key  store.Key
	from *stormSession

	mu     sync.Mutex
	erased bool // its erasure was asked for: what it has may be gone
	done   bool // and acknowledged
}

// token is what stands in one message alone.
func (s *stormSession) token(id string) string {
	return "_W_" + strings.TrimPrefix(id, "chat-") + "_W_"
}

// fork forks a session.
func (in *installation) fork(ctx context.Context, r *rand.Rand, n int) error {
	from := in.recent(r)
	key := store.Key{Tenant: from.key.Tenant, Session: fmt.Sprintf("fork-%d", n)}
	if _, err := in.store.Fork(ctx, from.key, key.Session, ""); err != nil {
		return err
	}
	in.mu.Lock()
	in.forks = append(in.forks, &stormFork{key: key, from: from})
	in.mu.Unlock()
	return nil
}

// treat archives, restores or erases a fork.
func (in *installation) treat(ctx context.Context, r *rand.Rand) (what string, err error) {
	in.mu.Lock()
	forks := in.forks[max(0, len(in.forks)-10):]
	in.mu.Unlock()
	if len(forks) == 0 {
		return "fork left alone", nil
	}
	f := forks[r.IntN(len(forks))]
	f.mu.Lock()
	defer f.mu.Unlock()
	switch n := r.IntN(10); {
	case n == 0:
		f.erased = true // before, as the answer may be lost
		if _, err = in.store.Admin.Erase(ctx, f.key, nil, "storm", "storm", false); err == nil {
			f.done = true
		}
		return "erasure of a fork", err
	case n < 3:
		_, err = in.store.Admin.Restore(ctx, f.key)
		return "restore of a fork", err
	case n < 5: // so that it has something to archive
		view, revision, err := in.store.View(ctx, f.key)
		if err != nil || len(view) < 4 {
			return "replacement in a fork", err
		}
		msgs := make([]store.NewMessage, 0, len(view))
		for _, m := range view[len(view)/2:] {
			msgs = append(msgs, store.NewMessage{Message: m.Message})
		}
		_, err = in.store.Replace(ctx, f.key, revision, msgs, "storm")
		return "replacement in a fork", err
	}
	return in.archive(ctx, f.key)
}

// archive archives a session, whatever was restored.
func (in *installation) archive(ctx context.Context, k store.Key) (what string, err error) {
	// What a restore has brought back would stay for a day.
	if _, err := in.pool.Exec(ctx, in.q(`UPDATE @schema@.sessions SET restored_at = NULL WHERE tenant = $1 AND id = $2 AND restored_at IS NOT NULL`),
		k.Tenant, k.Session); err != nil {
		return "archive", fmt.Errorf("%w: %w", store.ErrUnavailable, err) // of a connection that was killed
	}
	moved, err := in.store.Admin.ArchiveSession(ctx, k, 0)
	if moved.Messages == 0 {
		return "archive of nothing", err
	}
	return "archive", err
}

// verifyErased looks for the words of each acknowledged erasure in all tables, in the segments of
// the archive, in Redis and in the logs of the processes.
func (in *installation) verifyErased() {
	in.t.Helper()
	ctx := in.t.Context()
	var words []string
	for _, s := range in.sessions {
		for _, m := range s.said {
			if s.erased[m.ID] && strings.Contains(m.Content.String(), s.token(m.ID)) {
				words = append(words, s.token(m.ID))
				in.counted.add("words erased")
			}
		}
	}
	for _, table := range in.strings(`SELECT oid::regclass::text FROM pg_class WHERE relnamespace = '@schema@'::regnamespace AND relkind = 'r'`) {
		for _, found := range in.strings(`SELECT w || ' of ' || left(t::text, 200) FROM `+table+` t JOIN unnest($1::text[]) w ON strpos(t::text, w) > 0`, words) {
			in.t.Errorf("%s: erased, and in %s: %s", in.schema, table, found)
		}
	}
	decoder := must(zstd.NewReader(nil))(in.t)
	defer decoder.Close()
	rows := must(in.pool.Query(ctx, in.q(`SELECT id, data FROM @schema@.archive_segments WHERE data IS NOT NULL`)))(in.t)
	var id int64
	var data []byte
	if _, err := pgx.ForEachRow(rows, []any{&id, &data}, func() error {
		raw, err := decoder.DecodeAll(data, nil)
		for _, w := range words {
			if strings.Contains(string(raw), w) {
				in.t.Errorf("%s: erased, and in segment %d: %s", in.schema, id, w)
			}
		}
		in.counted.add("segments taken apart")
		return err
	}); err != nil {
		in.t.Fatal(err)
	}
	c := in.client()
	defer func() { _ = c.Close() }()
	keys := must(c.Keys(ctx, "*").Result())(in.t)
	for _, key := range keys {
		dump, _ := c.Dump(ctx, key).Result()
		for _, w := range words {
			if strings.Contains(key+dump, w) {
				in.t.Errorf("%s: erased, and in Redis at %s: %s", in.schema, key, w)
			}
		}
	}
	for _, w := range words {
		for _, text := range in.logs {
			if strings.Contains(text.String(), w) {
				in.t.Errorf("%s: erased, and in a log: %s", in.schema, w)
			}
		}
	}
}

// verifyForks compares what forks have with what was said, and restores it.
func (in *installation) verifyForks() {
	in.t.Helper()
	ctx := in.t.Context()
	for _, f := range in.forks {
		row := must(in.store.Session(ctx, f.key))(in.t)
		if _, err := in.store.Admin.Restore(ctx, f.key); err != nil {
			in.t.Errorf("%s: restore of %s: %v", in.schema, f.key, err)
			continue
		}
		stored := must(in.log(ctx, row.SID))(in.t)
		for seq, m := range stored {
			said := f.from.said[seq]
			done, asked := f.from.erased[said.ID]
			switch has := words(m) == words(said); {
			case (f.done || done) && strings.Contains(words(m), f.from.owner):
				in.t.Errorf("%s: %s #%d was erased and is %s", in.schema, f.key, seq, words(m))
			case !has && !asked && !f.erased:
				in.t.Errorf("%s: %s #%d is %s, %s was said", in.schema, f.key, seq, words(m), words(said))
			}
			in.counted.add("messages of forks")
		}
	}
}

// strings returns the one column of a query.
func (in *installation) strings(sql string, args ...any) []string {
	in.t.Helper()
	rows, _ := in.pool.Query(in.t.Context(), in.q(sql), args...) // rows hold the error
	out := must(pgx.CollectRows(rows, pgx.RowTo[string]))(in.t)
	return out
}
