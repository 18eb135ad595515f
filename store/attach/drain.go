package attach

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// Bounds of one drain.
const (
	atOnce       = 4
	sessionsPage = 200
	rowsPage     = 10_000 // of a page of the backfill
	notesOf      = 5000
)

// DrainSession reads the noted rows of a session, or all of them where it is not in the log yet. What the log holds
// of the session is then what the table has, but for rows that are no messages. Each pass is one transaction, which
// waits for another drain of the session; the erasure of deleted rows is one of its own before their notes go.
func (a *Attachment) DrainSession(ctx context.Context, session string) error {
	for {
		d := &drain{Attachment: a, ctx: ctx, session: session}
		err := store.InTx(ctx, a.st, "drain rows of session "+session, func(tx pgx.Tx) error {
			d.tx = tx
			return d.run()
		})
		k := store.Key{Tenant: d.tenant, Session: d.id}
		switch {
		case errors.Is(err, store.ErrArchived):
			_, err = a.st.Admin.Restore(ctx, k)
		case err == nil && len(d.erase) > 0:
			_, err = a.st.Admin.Erase(ctx, k, d.erase, "rows were deleted from "+a.Table, "attach", false)
			if errors.Is(err, store.ErrInUse) {
				return nil // an open tool loop: the notes stay
			}
		case err != nil || !d.more:
			return err
		}
		if err != nil {
			return err
		}
	}
}

// drain is one transaction of DrainSession.
type drain struct {
	*Attachment
	ctx             context.Context //nolint:containedctx // of one call
	tx              pgx.Tx
	session         string
	tenant, id      string
	appended, edits []*row

	erase []string // ids of messages to erase before the notes of their rows go
	wait  []string // keys of rows to read again
	more  bool     // there are more notes
}

// errLogged ends first where the log has the session.
var errLogged = &store.Error{Kind: errors.New("the log has the session")}

func (d *drain) query(dest []any, sql string, args ...any) error {
	return d.tx.QueryRow(d.ctx, d.names.Replace(sql), args...).Scan(dest...)
}

func (d *drain) exec(sql string, args ...any) error {
	_, err := d.tx.Exec(d.ctx, d.names.Replace(sql), args...)
	return err
}

// enter notes that the session is in the log, and reports whether this drain has done so: another one may have been
// faster. logged is whether the log had it, as it was attached before.
func (d *drain) enter(rows []*row) (entered, logged bool, err error) {
	d.tenant, d.id = cmp.Or(d.Tenant, store.DefaultTenant), d.Name+":"+d.session
	if i := slices.IndexFunc(rows, func(r *row) bool { return r.Tenant != "" }); i >= 0 {
		d.tenant = rows[i].Tenant
	}
	const enter = `WITH entered AS (INSERT INTO @.sessions VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING session)
		SELECT EXISTS (SELECT FROM entered), EXISTS (SELECT FROM compactor.sessions WHERE tenant = $2 AND id = $3)`
	err = d.query([]any{&entered, &logged}, enter, d.session, d.tenant, d.id)
	if err == nil && entered && logged && d.Model != "" { // which an append of known messages does not set
		err = d.exec(`SELECT compactor.set_model($1, $2, $3)`, d.tenant, d.id, d.Model)
	}
	return entered, logged, err
}

// first brings rows of a session that is not in the log into it. It leaves the notes, as the rows were read before. Where
// another drain was faster it does nothing, and the next drain reads the noted rows again.
func (d *drain) first(rows []*row) error {
	entered, logged, err := d.enter(rows)
	switch {
	case err != nil || !entered:
		return err
	case logged:
		return errLogged
	}
	return d.begin(rows, nil)
}

// begin brings the rows of a session that is new here. Its label is for policies.
func (d *drain) begin(rows []*row, gone []*known) error {
	err := d.bring(rows, gone)
	if err == nil {
		err = d.exec(`SELECT compactor.set_labels(tenant, id, labels || jsonb_build_object('attachment', $3::text))
			FROM compactor.sessions WHERE tenant = $1 AND id = $2`, d.tenant, d.id, d.Name)
	}
	return err
}

// run drains the notes.
func (d *drain) run() error {
	var attached time.Time
	const of = `SELECT s.tenant, s.id, (SELECT created_at FROM compactor.attachments WHERE name = $2) FROM @.sessions s WHERE session = $1 FOR UPDATE`
	err := d.query([]any{&d.tenant, &d.id, &attached}, of, d.session, d.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		err = d.whole()
		if err == nil {
			err = d.query([]any{&d.tenant, &d.id, &attached}, of, d.session, d.Name)
		}
	}
	if err == nil && !attached.Equal(d.CreatedAt) {
		err = &store.Error{Kind: store.ErrStale, Message: d.Name + " was attached again"}
	}
	if err != nil || len(d.wait) > 0 {
		return err
	}
	var notes []int64
	var keys []string
	const noted = `SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(DISTINCT key) FILTER (WHERE key IS NOT NULL), '{}')
		FROM (SELECT id, key FROM @.notes WHERE session = $1 ORDER BY id LIMIT $2) n`
	if err := d.query([]any{&notes, &keys}, noted, d.session, notesOf); err != nil {
		return err
	}
	d.more = len(notes) == notesOf
	if len(keys) > 0 {
		rows, gone, err := d.read(keys)
		if err == nil {
			err = d.bring(rows, gone)
		}
		if err != nil {
			return err
		}
	}
	return d.exec(`DELETE FROM @.notes WHERE session = $1 AND id = ANY ($2)`, d.session, notes)
}

// whole reads all rows of a session that is new here.
func (d *drain) whole() error {
	rows, _, err := d.read(nil)
	if err != nil {
		return err
	}
	entered, logged, err := d.enter(rows)
	if err != nil || !entered {
		return err
	}
	var gone []*known
	if logged {
		was, err := d.logged()
		if err != nil {
			return err
		}
		for _, r := range rows {
			r.known = was[r.Key]
			delete(was, r.Key)
		}
		for _, key := range slices.Sorted(maps.Keys(was)) {
			gone = append(gone, was[key])
		}
	}
	return d.begin(rows, gone)
}

// bring makes the log have rows, and not those that are gone.
func (d *drain) bring(rows []*row, gone []*known) error {
	var waiting []*known // of gone, until later
	if d.OnDelete == Erase && len(gone) > 0 {
		// Each version of them: an erasure takes the key from the message.
		const words = `SELECT coalesce(array_agg(m.id), '{}') FROM compactor.sessions s JOIN compactor.message_log m ON m.sid = s.sid
			WHERE s.tenant = $1 AND s.id = $2 AND m.kind = 'm' AND m.source_id = ANY ($3)`
		if err := d.query([]any{&d.erase}, words, d.tenant, d.id, keysOf(gone)); err != nil {
			return err
		}
		if len(d.erase) > 0 {
			waiting, gone = gone, nil
		}
	}
	changed, err := d.sort(rows)
	if err == nil {
		err = d.append()
	}
	if err == nil {
		err = d.within(func() error { return errors.Join(d.replace(), d.remove(gone)) })
	}
	if refused(store.MapError(err)) {
		err = d.replaceEach(gone)
	}
	if errors.Is(store.MapError(err), store.ErrInUse) { // an open tool loop holds the view until later rows end it
		err = nil
		for _, r := range d.edits {
			d.wait = append(d.wait, r.Key)
		}
		waiting, gone = append(waiting, gone...), nil
		changed = slices.DeleteFunc(changed, func(r *row) bool { return slices.Contains(d.wait, r.Key) })
	}
	d.wait = append(d.wait, keysOf(waiting)...)
	if err == nil {
		err = d.save(changed, gone, waiting)
	}
	if err == nil {
		err = d.clear(gone)
	}
	if err == nil && len(d.wait) > 0 {
		err = d.exec(`INSERT INTO @.notes (session, key) SELECT $1, k FROM unnest($2::text[]) k`, d.session, d.wait)
	}
	return err
}

// within calls f in a savepoint.
func (d *drain) within(f func() error) error {
	outer := d.tx
	defer func() { d.tx = outer }()
	return pgx.BeginFunc(d.ctx, outer, func(tx pgx.Tx) error {
		d.tx = tx
		return f()
	})
}

// replaceEach replaces the messages of edited rows one row after the other. Those of a row that the log refuses leave.
func (d *drain) replaceEach(gone []*known) error {
	all := d.edits
	defer func() { d.edits = all }()
	for _, r := range all {
		d.edits = []*row{r}
		before := *r.known
		err := d.within(d.replace)
		if refused(store.MapError(err)) {
			*r.known = before
			r.known.Fault, r.messages, r.elements = store.MapError(err).Error(), nil, nil
			err = d.within(d.replace)
		}
		if err != nil {
			return err
		}
	}
	d.edits = nil
	return d.within(func() error { return d.remove(gone) })
}

// logged returns the entries of the rows whose messages the log has, from an earlier attachment.
func (d *drain) logged() (map[string]*known, error) {
	const query = `
		SELECT m.source_id, m.id, m.seq, b.body FROM compactor.sessions s JOIN compactor.message_log m ON m.sid = s.sid
		LEFT JOIN compactor.message_body b ON b.sid = m.sid AND b.seq = m.seq
		WHERE s.tenant = $1 AND s.id = $2 AND m.kind = 'm' AND m.source_id IS NOT NULL ORDER BY m.seq`
	rows, _ := d.tx.Query(d.ctx, d.names.Replace(query), d.tenant, d.id) // rows hold the error
	all := map[string]*known{}
	versions := map[string]int{} // of ids
	var key, id string
	var seq int64
	var body *string
	_, err := pgx.ForEachRow(rows, []any{&key, &id, &seq, &body}, func() error {
		var part, version int
		if n, _ := fmt.Sscanf(strings.TrimPrefix(id, key), "#%d@%d", &part, &version); n < 2 || part < 1 {
			return nil // not from a table
		}
		k := all[key]
		if k == nil {
			k = &known{Key: key, Seq: seq}
			all[key] = k
		}
		k.Version = max(k.Version, version)
		for len(k.IDs) < part {
			k.IDs, k.Digests = append(k.IDs, ""), append(k.Digests, "")
		}
		if was := k.IDs[part-1]; was == "" || versions[was] <= version {
			versions[id] = version
			k.IDs[part-1], k.Digests[part-1] = id, ""
			var m chat.Message
			if body != nil && m.UnmarshalJSON([]byte(*body)) == nil {
				k.Digests[part-1] = digestOf(m)
			}
		}
		return nil
	})
	return all, err
}

// read returns the rows with some keys, nil for all, in the order of the table, and the entries of those that are
// deleted.
func (d *drain) read(keys []string) (rows []*row, gone []*known, err error) {
	var raw []byte
	const before = `SELECT coalesce(jsonb_agg(to_jsonb(r) - 'session'), '[]') FROM @.rows r WHERE session = $1 AND key = ANY ($2)`
	if err := d.query([]any{&raw}, before, d.session, keys); err != nil {
		return nil, nil, err
	}
	var known []*known
	if err := json.Unmarshal(raw, &known); err != nil {
		return nil, nil, err
	}
	found, _ := d.tx.Query(d.ctx, d.names.Replace(`SELECT `+rowColumns+` FROM @.read($1, $2)`), d.session, keys) // rows hold the error
	rows, err = pgx.CollectRows(found, func(r pgx.CollectableRow) (*row, error) {
		var x row
		return &x, r.Scan(x.fields()...)
	})
	byKey := map[string]*row{}
	for _, r := range rows {
		byKey[r.Key] = r
	}
	for _, k := range known {
		if r := byKey[k.Key]; r != nil {
			r.known = k
		} else if !k.Gone {
			gone = append(gone, k)
		}
	}
	return rows, gone, err
}

// sort decodes rows and sets which of them are to be appended and which edited. It returns the ones
// that have changed.
func (d *drain) sort(rows []*row) (changed []*row, err error) {
	last := int64(math.MaxInt64) // the seq of the session's last row
	for _, r := range rows {
		k := r.known
		if k != nil && k.Digest == r.Digest && !k.Gone {
			continue
		}
		changed = append(changed, r)
		d.decode(r)
		if k == nil {
			r.known = &known{Version: 1}
		}
		k = r.known
		k.Key, k.Digest, k.Fault = r.Key, r.Digest, r.fault
		n := 0 // messages that are as they were, or whose words are in the archive
		for n < min(len(k.Digests), len(r.messages)) && (k.Digests[n] == "" || k.Digests[n] == r.messages[n].digest) {
			n++
		}
		back := k.Gone && d.OnDelete != Keep
		k.Gone = false
		if n < len(k.Digests) || back && d.OnDelete == Erase {
			k.Version++
		}
		if back && d.OnDelete == Erase {
			n = 0
		}
		was := len(k.IDs)
		ids := slices.Clone(k.IDs[:n])
		for i := n; i < len(r.messages); i++ {
			ids = append(ids, fmt.Sprintf("%s#%d@%d", r.Key, i+1, k.Version))
		}
		for i := range r.messages {
			r.messages[i].id = ids[i]
		}
		if n == was && n < len(ids) && last == math.MaxInt64 && was > 0 {
			if err := d.query([]any{&last}, `SELECT coalesce(max(seq), 0) FROM @.rows WHERE session = $1`, d.session); err != nil {
				return nil, err
			}
		}
		switch grown := n == was; {
		case back, was == 0, grown && k.Seq == last:
			d.appended = append(d.appended, r)
		case grown && n == len(ids): // the columns differ, the messages do not
		default:
			d.edits = append(d.edits, r)
			continue // replace needs the former ids
		}
		r.use()
	}
	return changed, nil
}

// append appends the messages of rows. Where the log refuses them, each row alone, so that only those that it refuses
// are faults.
func (d *drain) append() error {
	const page = 500
	for rows := range slices.Chunk(d.appended, page) {
		err := d.appendRows(rows)
		if err == nil || !refused(err) {
			if err != nil {
				return err
			}
			continue
		}
		for _, r := range rows {
			err := d.appendRows([]*row{r})
			if err != nil && !refused(err) {
				return err
			}
			if err != nil {
				r.known.Fault, r.known.IDs, r.known.Digests = err.Error(), []string{}, []string{}
			}
		}
	}
	return nil
}

// refused reports whether the log does not take a message, whenever it is tried.
func refused(err error) bool {
	return errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrConflict)
}

func (d *drain) appendRows(rows []*row) error {
	var all []json.RawMessage
	for _, r := range rows {
		all = append(all, r.json()...)
	}
	if len(all) == 0 {
		return nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var seqs []int64
	err = pgx.BeginFunc(d.ctx, d.tx, func(tx pgx.Tx) error {
		const query = `SELECT compactor.append($1, $2, $3::json, nullif($4, ''))`
		return tx.QueryRow(d.ctx, d.names.Replace(query), d.tenant, d.id, string(raw), d.Model).Scan(&seqs)
	})
	if err != nil {
		return store.MapError(err)
	}
	for _, r := range rows {
		if n := len(r.messages); n > 0 {
			if r.known.Seq == 0 || r.known.Seq > seqs[0] {
				r.known.Seq = seqs[0]
			}
			seqs = seqs[n:]
		}
	}
	return nil
}
