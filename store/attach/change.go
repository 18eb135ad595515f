package attach

import (
	"encoding/json"
	"maps"
	"slices"
	"sort"

	"github.com/jackc/pgx/v5"
)

// viewed is a message of the view (compactor.attached_view).
type viewed struct {
	ID      string
	Origin  *string
	At      int64
	Message json.RawMessage
}

// placed is a message of a new view, sorted by its place in the present one.
type placed struct {
	place float64
	raw   json.RawMessage
}

// replace puts the new messages of edited rows into the view in the place of the former ones. A message whose former
// one is not in the view any more, as a summary has it, comes where it was, behind that summary.
func (d *drain) replace() error {
	if len(d.edits) == 0 {
		return nil
	}
	var revision, seen int64
	const of = `SELECT revision, last_seq FROM compactor.sessions WHERE tenant = $1 AND id = $2`
	if err := d.query([]any{&revision, &seen}, of, d.tenant, d.id); err != nil {
		return err
	}
	const messages = `SELECT id, origin, at, message::text FROM compactor.attached_view($1, $2) ORDER BY n`
	rows, _ := d.tx.Query(d.ctx, d.names.Replace(messages), d.tenant, d.id) // rows hold the error
	view, err := pgx.CollectRows(rows, pgx.RowToStructByPos[viewed])
	if err != nil {
		return err
	}
	out := map[string]bool{} // former messages that leave
	at := map[string]float64{}
	for n, v := range view {
		if v.Origin != nil {
			at[*v.Origin] = float64(n)
		}
	}
	var list []placed
	pins := map[string]string{} // the new message by the former one in its place
	for _, r := range d.edits {
		behind := float64(sort.Search(len(view), func(i int) bool { return view[i].At > r.known.Seq })) - 0.5
		for i, m := range r.messages {
			if slices.Contains(r.known.IDs, m.id) {
				if n, in := at[m.id]; in {
					behind = n + 0.25
				}
				continue // as it was
			}
			place := behind
			if i < len(r.known.IDs) {
				pins[r.known.IDs[i]] = m.id
				if n, in := at[r.known.IDs[i]]; in {
					place, behind = n, n+0.25
				}
			}
			list = append(list, placed{place, r.one(m)})
		}
		for _, id := range r.known.IDs {
			out[id] = !slices.ContainsFunc(r.messages, func(m message) bool { return m.id == id })
		}
		r.use()
	}
	for n, v := range view {
		if v.Origin != nil && out[*v.Origin] {
			continue
		}
		id, _ := json.Marshal(v.ID) // strings have a JSON form
		list = append(list, placed{float64(n), slices.Concat([]byte(`{"id":`), id, []byte{','}, v.Message[1:])})
	}
	slices.SortStableFunc(list, func(a, b placed) int {
		switch {
		case a.place < b.place:
			return -1
		case a.place > b.place:
			return 1
		}
		return 0
	})
	raws := make([]json.RawMessage, len(list))
	for i := range list {
		raws[i] = list[i].raw
	}
	raw, err := json.Marshal(raws)
	if err != nil {
		return err
	}
	replaced := d.exec(`SELECT compactor.replace_view($1, $2, $3, $4::json, 'attach', $5)`, d.tenant, d.id, revision, string(raw), seen)
	if replaced != nil || len(pins) == 0 {
		return replaced
	}
	const pinned = `SELECT coalesce(array_agg(m.id), '{}') FROM compactor.sessions s JOIN compactor.message_log m ON m.sid = s.sid AND s.pinned @> m.seq
		WHERE s.tenant = $1 AND s.id = $2 AND m.id = ANY ($3)`
	var former []string
	if err := d.query([]any{&former}, pinned, d.tenant, d.id, slices.Collect(maps.Keys(pins))); err != nil {
		return err
	}
	for _, id := range former {
		if err := d.exec(`SELECT compactor.pin($1, $2, $3::text), compactor.unpin($1, $2, $4::text)`, d.tenant, d.id, pins[id], id); err != nil {
			return err
		}
	}
	return nil
}

// remove takes the messages of deleted rows out of the view.
func (d *drain) remove(gone []*known) error {
	var ids []string
	for _, k := range gone {
		ids = append(ids, k.IDs...)
	}
	if len(ids) == 0 || d.OnDelete == Keep {
		return nil
	}
	return d.exec(`SELECT compactor.exclude($1, $2, $3, 'attach')`, d.tenant, d.id, ids)
}

// save stores the map of rows that have changed.
func (d *drain) save(changed []*row, gone, waiting []*known) error {
	all := append([]*known{}, waiting...)
	for _, r := range changed {
		all = append(all, r.known)
	}
	for _, k := range gone {
		k.Gone = true
		if d.OnDelete == Erase {
			k.Digest, k.Digests, k.Fault = "", nil, ""
		}
		all = append(all, k)
	}
	if len(all) == 0 {
		return nil
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return d.exec(`INSERT INTO @.rows AS r (session, key, seq, version, ids, digests, elements, digest, fault, gone)
		SELECT $1, x.key, x.seq, x.version, coalesce(x.ids, '{}'), coalesce(x.digests, '{}'), x.elements, x.digest, x.fault, x.gone
		FROM jsonb_to_recordset($2) AS x(key text, seq bigint, version int, ids text[], digests text[], elements int[],
			digest uuid, fault text, gone boolean)
		ON CONFLICT (session, key) DO UPDATE SET seq = excluded.seq, version = excluded.version, ids = excluded.ids,
			digests = excluded.digests, elements = excluded.elements, digest = excluded.digest,
			fault = excluded.fault, gone = excluded.gone`, d.session, string(raw))
}

// clear takes summaries out of the view of which all rows are deleted, and all of it where none is left.
func (d *drain) clear(gone []*known) error {
	if len(gone) == 0 || d.OnDelete == Keep {
		return nil
	}
	var left bool
	var ids []string
	const query = `
		SELECT EXISTS (SELECT FROM @.rows WHERE session = $3 AND NOT gone), array(
			SELECT v.id FROM compactor.attached_view($1, $2, false) v
			JOIN @.rows r ON r.session = $3 AND v.covers @> r.seq
			WHERE v.kind = 'summary' GROUP BY v.id HAVING bool_and(r.gone))`
	if err := d.query([]any{&left, &ids}, query, d.tenant, d.id, d.session); err != nil {
		return err
	}
	switch {
	case !left:
		return d.exec(`SELECT compactor.replace_view(tenant, id, revision, '[]'::json, 'attach', last_seq)
			FROM compactor.sessions WHERE tenant = $1 AND id = $2 AND live_messages > 0`, d.tenant, d.id)
	case len(ids) > 0:
		return d.exec(`SELECT compactor.exclude($1, $2, $3, 'attach')`, d.tenant, d.id, ids)
	}
	return nil
}
