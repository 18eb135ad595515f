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

// maxSegment bounds the size of a decompressed segment, as a damaged one could be of any size.
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

// pack returns bodies as a segment: each after its seq and its length, compressed.
func pack(bodies []body) (data []byte, raw int64) {
	var out []byte
	for _, b := range bodies {
		out = binary.AppendUvarint(out, uint64(b.Seq))
		out = binary.AppendUvarint(out, uint64(len(b.Text)))
		out = append(out, b.Text...)
	}
	return zstdWriter.EncodeAll(out, nil), int64(len(out))
}

// segment is a row of the archive. A purged one has no Data.
type segment struct {
	ID       int64
	Seqs     chat.Ranges
	Checksum []byte
	Data     []byte
}

// unpack returns the bodies of a segment that are in a set, without those that were restored.
func (g *segment) unpack(seqs chat.Ranges) (out []body, err error) {
	damaged := func(text string) error {
		return &Error{Kind: ErrDamaged, Message: fmt.Sprintf("segment %d of the archive: %s", g.ID, text), Hint: adviceLog}
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

// loadSegment returns a segment by its number.
func loadSegment(ctx context.Context, s *Store, tx pgx.Tx, id int64) (g segment, err error) {
	err = tx.QueryRow(ctx, s.q(`SELECT id, seqs::text, checksum, data FROM compactor.archive_segments WHERE id = $1`), id).
		Scan(&g.ID, rangesText{&g.Seqs}, &g.Checksum, &g.Data)
	return g, err
}

// loadSegments returns the segments that hold messages of a session.
func loadSegments(ctx context.Context, s *Store, db querier, k Key, seqs chat.Ranges) ([]segment, error) {
	const query = `SELECT id, seqs, checksum, data FROM compactor.archived_words($1, $2, $3)`
	return collectRows(ctx, s, db, func(row pgx.CollectableRow) (g segment, err error) {
		return g, row.Scan(&g.ID, rangesText{&g.Seqs}, &g.Checksum, &g.Data)
	}, query, k.tenant(), k.Session, seqs.String())
}

// fillArchived decodes the bodies of archived messages into them. It leaves out the messages
// that were purged and returns their seqs.
func (s *Store) fillArchived(ctx context.Context, k Key, archived []*Stored) (purged chat.Ranges, err error) {
	if len(archived) == 0 {
		return nil, nil
	}
	seqs := make([]chat.Seq, len(archived))
	for i, m := range archived {
		seqs[i] = m.Seq
	}
	set := chat.RangesOf(seqs...)
	segments, err := loadSegments(ctx, s, s.pool, k, set)
	if err != nil {
		return nil, wrap("read the archive of session "+k.String(), err)
	}
	bodies := map[chat.Seq]string{}
	for i := range segments {
		if segments[i].Data == nil {
			purged = purged.Union(segments[i].Seqs.Intersect(set))
			continue
		}
		list, err := segments[i].unpack(set)
		if err != nil {
			return nil, fmt.Errorf("read the archive of session %s: %w", k, err)
		}
		for _, b := range list {
			bodies[b.Seq] = b.Text
		}
	}
	for _, m := range archived {
		text, ok := bodies[m.Seq]
		switch {
		case ok:
			m.Purged = false
			if err := m.fill(m.ID, text, m.SourceID, m.CreatedAt); err != nil {
				return nil, err
			}
		case !purged.Has(m.Seq):
			text := fmt.Sprintf("the words of message %d are neither stored nor in the archive", m.Seq)
			return nil, fmt.Errorf("messages of session %s: %w", k, &Error{Kind: ErrDamaged, Message: text, Hint: hintDamaged})
		}
	}
	return purged, nil
}
