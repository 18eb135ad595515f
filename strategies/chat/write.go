package chat

import (
	"bytes"
	"encoding/json"
	"io"
)

// WriteSession writes s as one line of JSONL, in one call of w.Write. Reading it
// gives an equal session, except that raw values which hold line breaks lose the
// white space between their tokens.
func WriteSession(w io.Writer, s Session) error {
	line := append(appendField([]byte{'{'}, "session_id", s.ID), ',')
	if s.Model != "" {
		line = append(appendField(line, "model", s.Model), ',')
	}
	line = append(line, `"messages":`...)
	line = appendMessages(line, s.Messages)
	line = appendExtra(line, s.Extra, func(key string) bool {
		return key == "session_id" || key == "messages" || key == "model" && s.Model != ""
	})
	return writeLine(w, append(line, '}'))
}

// WriteMessages writes ms as one JSON array on a line of its own, in one call of
// w.Write.
func WriteMessages(w io.Writer, ms []Message) error {
	return writeLine(w, appendMessages(nil, ms))
}

func appendMessages(dst []byte, ms []Message) []byte {
	dst = append(dst, '[')
	for i, m := range ms {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = m.AppendJSON(dst)
	}
	return append(dst, ']')
}

func writeLine(w io.Writer, line []byte) error {
	// A line break in JSON is white space between tokens: it is escaped in strings.
	if bytes.IndexByte(line, '\n') >= 0 {
		var b bytes.Buffer
		if err := json.Compact(&b, line); err != nil {
			return err
		}
		line = b.Bytes()
	}
	_, err := w.Write(append(line, '\n'))
	return err
}
