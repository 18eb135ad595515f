package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// line is one trajectory as JSON: an object with an array of turns under
// "conversations", or only the array. Parts that are not compressed are copied verbatim.
type line struct {
	raw        []byte
	start, end int // bounds of the array in raw
	turns      []Turn
	rawTurns   []json.RawMessage
}

func readLine(raw []byte) (*line, error) {
	l := &line{raw: raw, end: len(raw)}
	if !json.Valid(raw) {
		return nil, errors.New("no JSON")
	}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		at, ok := member(raw, "conversations")
		if !ok {
			return nil, errors.New("conversations: missing")
		}
		l.start, l.end = at[0], at[1]
	}
	if err := json.Unmarshal(raw[l.start:l.end], &l.rawTurns); err != nil || l.rawTurns == nil {
		return nil, errors.New("conversations: want an array of turns")
	}
	l.turns = make([]Turn, len(l.rawTurns))
	for i, raw := range l.rawTurns {
		var t struct{ From, Value *string }
		if err := json.Unmarshal(raw, &t); err != nil || t.From == nil || t.Value == nil {
			return nil, fmt.Errorf(`turn %d: want {"from": text, "value": text}`, i)
		}
		l.turns[i] = Turn{*t.From, *t.Value}
	}
	return l, nil
}

// member returns the bounds of a key's value in a JSON object, of the last one if the key
// repeats.
func member(object []byte, key string) (at [2]int, ok bool) {
	for name, bounds := range rawjson.Members(object) {
		if name == key {
			at, ok = bounds, true
		}
	}
	return at, ok
}

// compressed returns the line with a summary in place of the turns of the region, and the
// notice appended to the system turns before it.
func (l *line) compressed(r Region, summary Turn, notice string) ([]byte, error) {
	turns := slices.Clone(l.rawTurns[:r.Start])
	for i := range turns {
		if l.turns[i].From == System && notice != "" {
			var err error
			if turns[i], err = withNotice(turns[i], notice); err != nil {
				return nil, err
			}
		}
	}
	turns = append(append(turns, rawjson.Quote(summary)), l.rawTurns[r.End:]...)
	out := append(slices.Clone(l.raw[:l.start]), '[')
	for i, turn := range turns {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(out, turn...)
	}
	return append(append(out, ']'), l.raw[l.end:]...), nil
}

// withNotice appends a notice to the value of a turn, whose JSON escapes are kept.
func withNotice(turn json.RawMessage, notice string) (json.RawMessage, error) {
	at, ok := member(turn, "value")
	if !ok {
		return nil, errors.New("a turn without value")
	}
	out := append(slices.Clone(turn[:at[1]-1]), rawjson.Quote(notice)[1:]...)
	return append(out, turn[at[1]:]...), nil
}
