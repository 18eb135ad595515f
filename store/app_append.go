package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

// Append adds messages to a session, creating it if necessary, and returns their seqs
// and the number of repairs: NUL and invalid UTF-8, which Postgres cannot store, are
// replaced in msgs. Append is atomic and idempotent by message id; a known id with
// other content is ErrConflict, and one that the application had deleted (see Exclude) returns
// to the view. The session has the model of the latest Append that names one and has a
// message that is new. Messages in the format of another API are ErrInvalid: see AppendFormat.
func (s *Store) Append(ctx context.Context, k Key, model string, msgs []NewMessage) (seqs []chat.Seq, repairs int, err error) {
	return s.append(ctx, "append to", false, k, model, "", msgs)
}

// AppendOnce appends messages without ids. It is idempotent by the key of the
// batch: the same key with the same messages returns the seqs of the first call, and
// with other messages it is ErrConflict. The messages get the ids KEY#1, KEY#2 and so on,
// so that a key is valid for as long as its session exists.
func (s *Store) AppendOnce(ctx context.Context, k Key, model, key string, msgs []NewMessage) (seqs []chat.Seq, repairs int, err error) {
	return s.append(ctx, "append to", false, k, model, key, msgs)
}

// AppendFormat reads messages in a format of package formats ("anthropic", "responses"
// and so on) and appends them as AppendOnce does; an empty key is none. raw is one
// message, a list or a document, with the new messages only: a system prompt that each
// request to the API repeats is a message each time. If model is empty, that of the document
// counts. ErrInvalid: raw cannot be read, or holds several sessions.
func (s *Store) AppendFormat(ctx context.Context, k Key, model, format, key string, raw []byte) (seqs []chat.Seq, repairs int, err error) {
	op := fmt.Sprintf("append to session %s in format %s", k, format)
	in, msgs, err := readMessages(op, format, raw)
	if err != nil {
		return nil, 0, err
	}
	seqs, repairs, err = s.AppendOnce(ctx, k, cmp.Or(model, in.Model), key, msgs)
	return seqs, repairs + in.Repairs, err
}

// readMessages reads one session, and its messages as new ones.
func readMessages(op, format string, raw []byte) (session formats.Session, msgs []NewMessage, err error) {
	in, err := formats.NewReader(bytes.NewReader(raw), format)
	if err != nil {
		return session, nil, fmt.Errorf("%s: %w: %w", op, ErrInvalid, err)
	}
	session, err = in.Next()
	if err == nil {
		if _, more := in.Next(); !errors.Is(more, io.EOF) {
			err = cmp.Or(more, errors.New("several sessions, want one"))
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("there are no messages")
	}
	if err != nil {
		return session, nil, fmt.Errorf("%s: %w: %w", op, ErrInvalid, err)
	}
	msgs = make([]NewMessage, len(session.Messages))
	for i, m := range session.Messages {
		msgs[i].Message = m
	}
	return session, msgs, nil
}

// AppendOptions describe the messages of AppendRaw.
type AppendOptions struct {
	Model  string
	Format string // of package formats; empty: found
	Key    string // of the batch, as in AppendOnce
	// Revision is that of the view on which they were written, as in AppendOn; nil for the present one.
	Revision *int64
	// Most bounds the messages; 0 for no limit.
	Most int
	// Instead are the ids of messages that leave the view in the same change, if it is that of Seen, for By;
	// then there may be no messages, and Revision does not count.
	Instead []string
	Seen    ViewState
	By      string
}

// Appended is the result of AppendRaw: the seqs of the messages, and the session after them.
type Appended struct {
	Seqs     []chat.Seq `json:"seqs"`
	Repairs  int        `json:"repairs"` // of text that cannot be stored, as in Append
	Revision int64      `json:"revision"`
	LastSeq  chat.Seq   `json:"last_seq"`
	Due      bool       `json:"due"`
	// Stale reports that the view has changed since the revision on which the messages were written.
	Stale bool `json:"stale"`
	// ReasoningExcluded lists the messages whose signed reasoning is not in the view.
	ReasoningExcluded []chat.Seq `json:"reasoning_excluded"`
	// LeftOut counts the records, fields and parts that no message could hold (see formats.ReadReport).
	LeftOut map[string]int `json:"left_out,omitempty"`
}

// AppendRaw appends messages in a format as AppendFormat does, with the revision of AppendOn, and
// returns the state of the session after it, in the same round trip. The login needs the rights of
// the role operator.
func (s *Store) AppendRaw(ctx context.Context, k Key, raw []byte, o AppendOptions) (Appended, error) {
	op := fmt.Sprintf("append to session %s", k)
	var in formats.Session
	var msgs []NewMessage
	var err error
	if len(o.Instead) == 0 || strings.Trim(string(raw), "[] \t\r\n") != "" {
		if in, msgs, err = readMessages(op, cmp.Or(o.Format, formats.Auto), raw); err != nil {
			return Appended{}, err
		}
		o.Model = cmp.Or(o.Model, in.Model)
	}
	if o.Most > 0 && len(msgs) > o.Most {
		return Appended{}, fmt.Errorf("%s: %w: %d messages, want at most %d at once", op, ErrInvalid, len(msgs), o.Most)
	}
	var out Appended
	var bare chat.Ranges
	// New messages are among the last ones, with what a repair of the view wrote.
	const query = `
		SELECT revision, last_seq, due, (reasoning_out * int8multirange(int8range(greatest(1, last_seq - 2 * $3), last_seq + 1)))::text
		FROM compactor.sessions WHERE tenant = $1 AND id = $2`
	out.Seqs, out.Repairs, err = s.appendIn(ctx, "append to", func(*pgx.Batch) {}, func(batch *pgx.Batch) {
		batch.Queue(s.q(query), k.tenant(), k.Session, len(msgs)).QueryRow(func(row pgx.Row) error {
			return row.Scan(&out.Revision, &out.LastSeq, &out.Due, rangesText{&bare})
		})
	}, k, msgs, o)
	out.Repairs += in.Repairs
	out.LeftOut = in.Report.LeftOut()
	out.Stale = o.Revision != nil && *o.Revision < out.Revision
	out.ReasoningExcluded = append([]chat.Seq{}, chat.RangesOf(out.Seqs...).Intersect(bare).Seqs()...)
	return out, err
}

// AppendOn appends messages that were written on the view of a revision (see View) as
// Append does. If the view has changed since, their signed reasoning is not in it: a model
// that binds reasoning to the messages before it would not accept it any more. ErrStale: the
// session has not had this revision yet.
func (s *Store) AppendOn(ctx context.Context, k Key, revision int64, model string, msgs []NewMessage) (seqs []chat.Seq, repairs int, err error) {
	return s.append(ctx, "append to", false, k, model, "", msgs, revision)
}

// Import appends an existing history as Append does, but enqueues no run: sessions that it
// makes due wait for the next sweep, or for Forgotten.
func (s *Store) Import(ctx context.Context, k Key, model string, msgs []NewMessage) (seqs []chat.Seq, repairs int, err error) {
	return s.append(ctx, "import", true, k, model, "", msgs)
}

// append appends messages, to the view of a revision if one is given. op prefixes errors; quiet
// suppresses the notification.
func (s *Store) append(
	ctx context.Context, op string, quiet bool, k Key, model, key string, msgs []NewMessage, revision ...int64,
) (seqs []chat.Seq, repairs int, err error) {
	before := func(*pgx.Batch) {}
	if quiet {
		before = func(batch *pgx.Batch) { batch.Queue(`SELECT set_config('compactor.quiet', 'on', true)`) }
	}
	o := AppendOptions{Model: model, Key: key}
	if len(revision) > 0 {
		o.Revision = &revision[0]
	}
	return s.appendIn(ctx, op, before, func(*pgx.Batch) {}, k, msgs, o)
}

// appendIn calls the SQL function append, append_on or append_instead between other statements of one
// transaction, in one round trip.
func (s *Store) appendIn(
	ctx context.Context, op string, before, after func(*pgx.Batch), k Key, msgs []NewMessage, o AppendOptions,
) (seqs []chat.Seq, repairs int, err error) {
	for i := range msgs {
		repairs += chat.Sanitize(&msgs[i].Message)
	}
	raw, err := encode(msgs)
	if err != nil {
		return nil, 0, fmt.Errorf("%s session %s: %w", op, k, err)
	}
	query, args := `SELECT compactor.append($1, $2, $3::json, $4, $5)`, []any{k.tenant(), k.Session, raw, o.Model, o.Key}
	switch {
	case len(o.Instead) > 0:
		query, args = `SELECT compactor.append_instead($1, $2, $6, $7, $8, $3::json, $4, $5, $9)`, append(args, o.Instead, o.Seen.Revision, o.Seen.LastSeq, o.By)
	case o.Revision != nil:
		query, args = `SELECT compactor.append_on($1, $2, $6, $3::json, $4, $5)`, append(args, *o.Revision)
	}
	_, err = restoring(ctx, s, k, func() (struct{}, error) { // messages that come back into the view may be archived
		var batch pgx.Batch // a new one for each attempt: pgx changes the batch that it sends
		before(&batch)
		traced(ctx, &batch)
		batch.Queue(s.q(query), args...).QueryRow(func(row pgx.Row) error { return row.Scan(&seqs) })
		after(&batch)
		return struct{}{}, mapError(s.pool.SendBatch(ctx, &batch).Close())
	})
	if err != nil {
		return nil, 0, prefix(fmt.Sprintf("%s session %s", op, k), err)
	}
	return seqs, repairs, nil
}

// Stored is a message of the log with its metadata.
type Stored struct {
	chat.Message
	Seq     chat.Seq
	Kind    chat.Kind
	Tokens  chat.Tokens
	Counter string

	// Included reports whether the message is in the view. The next fields explain an
	// excluded message.
	Included      bool
	ExcludeReason string
	ExcludedBy    int64  // run
	SummarizedBy  string // id of the summary or replacement in its place
	// ReasoningExcludedBy is the run that took the signed reasoning of an included message
	// out of the view, 0 for none.
	ReasoningExcludedBy int64
	Pinned              bool
	SummaryOf           chat.Ranges
	// Purged reports that the content was deleted, as the policy says: the message has
	// only its id, role and time.
	Purged bool
}
