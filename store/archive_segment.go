package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/sessionstore/compactor/strategies/chat"
)

// maxSegment bounds what a damaged segment can make of itself; a message is far smaller.
const maxSegment = 2 << 30

var (
	zstdWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	zstdReader, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSegment))
)

// body is the stored text of a message.
type body struct {
	Seq  chat.Seq
	Text string
}

// pack returns bodies as a segment: each behind its seq and its length, compressed.
func pack(bodies []body) (data []byte, raw int64) {
	var out []byte
	for _, b := range bodies {
		out = binary.AppendUvarint(out, uint64(b.Seq))
		out = binary.AppendUvarint(out, uint64(len(b.Text)))
		out = append(out, b.Text...)
	}
	return zstdWriter.EncodeAll(out, nil), int64(len(out))
}

// segment is a row of the archive. Without Data, it was purged.
type segment struct {
	ID       int64
	Seqs     chat.Ranges
	Checksum []byte
	Data     []byte
}

// unpack returns the bodies of a segment that are in a set, without those that are back.
func (g *segment) unpack(seqs chat.Ranges) (out []body, err error) {
	damaged := func(what string) error {
		return &Error{Kind: ErrDamaged, Message: fmt.Sprintf("segment %d of the archive: %s", g.ID, what), Hint: "restore it from a backup: nothing else has what was said"}
	}
	if sum := sha256.Sum256(g.Data); string(sum[:]) != string(g.Checksum) {
		return nil, damaged("its checksum is another one")
	}
	raw, err := zstdReader.DecodeAll(g.Data, nil)
	if err != nil {
		return nil, damaged("it cannot be decompressed")
	}
	seqs = seqs.Intersect(g.Seqs)
	for len(raw) > 0 {
		seq, n := binary.Uvarint(raw)
		size, m := binary.Uvarint(raw[max(n, 0):])
		if n <= 0 || m <= 0 || size > uint64(len(raw)-n-m) {
			return nil, damaged("it ends within a message")
		}
		text := raw[n+m : n+m+int(size)]
		if raw = raw[n+m+int(size):]; seqs.Has(chat.Seq(seq)) {
			out = append(out, body{chat.Seq(seq), string(text)})
		}
	}
	return out, nil
}

// segment returns one by its number.
func (s *Store) segment(ctx context.Context, tx pgx.Tx, id int64) (g segment, err error) {
	err = tx.QueryRow(ctx, s.q(`SELECT id, seqs::text, checksum, data FROM compactor.archive_segments WHERE id = $1`), id).
		Scan(&g.ID, rangesText{&g.Seqs}, &g.Checksum, &g.Data)
	return g, err
}

// segments returns those that have words of a session's messages.
func (s *Store) segments(ctx context.Context, db querier, k Key, seqs chat.Ranges) ([]segment, error) {
	rows, _ := db.Query(ctx, s.q(`SELECT id, seqs, checksum, data FROM compactor.archived_words($1, $2, $3)`), k.tenant(), k.Session, seqs.String()) // rows hold the error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g segment, err error) {
		return g, row.Scan(&g.ID, rangesText{&g.Seqs}, &g.Checksum, &g.Data)
	})
}

// fillArchived sets the words of the messages that are in the archive. Those that were
// purged stay without.
func (s *Store) fillArchived(ctx context.Context, k Key, all []Stored, away chat.Ranges) error {
	bodies, purged, err := s.archivedBodies(ctx, k, away)
	if err != nil {
		return err
	}
	for i := range all {
		m := &all[i]
		text, ok := bodies[m.Seq]
		switch {
		case !away.Has(m.Seq) || !ok && purged.Has(m.Seq):
			continue
		case !ok:
			return fmt.Errorf("messages of session %s: %w", k, lost(m.Seq))
		}
		m.Purged = false
		if err := m.fill(m.ID, text, m.SourceID, m.CreatedAt); err != nil {
			return err
		}
	}
	return nil
}

// lost is the error for a message of which neither the table nor the archive has the words.
func lost(seq chat.Seq) error {
	return &Error{Kind: ErrDamaged, Message: fmt.Sprintf("the words of message %d are neither stored nor in the archive", seq), Hint: "compactor doctor says what is damaged"}
}

// archivedBodies returns the words of messages that the archive has, and those that were
// purged.
func (s *Store) archivedBodies(ctx context.Context, k Key, seqs chat.Ranges) (bodies map[chat.Seq]string, purged chat.Ranges, err error) {
	segments, err := s.segments(ctx, s.pool, k, seqs)
	if err != nil {
		return nil, nil, wrap("read the archive of session "+k.String(), err)
	}
	bodies = map[chat.Seq]string{}
	for i := range segments {
		if segments[i].Data == nil {
			purged = purged.Union(segments[i].Seqs)
			continue
		}
		list, err := segments[i].unpack(seqs)
		if err != nil {
			return nil, nil, fmt.Errorf("read the archive of session %s: %w", k, err)
		}
		for _, b := range list {
			bodies[b.Seq] = b.Text
		}
	}
	return bodies, purged, nil
}
