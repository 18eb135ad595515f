package plan

import (
	"context"
	"iter"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/redact"
)

// Originals reads from the log of a session the messages of the application that stored
// messages stand for: themselves, or those that the summaries and replacements among them cover,
// directly or through others. Messages that were dropped for lack of room, by the fallback of
// a pipeline, are among them: nothing stands for those yet. Other messages in the view are left
// out, and so are those that were excluded for another reason. Where words were purged, without a
// summary that stands for them, the replacement is in their place.
//
// messages yields them in log order and can be ranged over several times; it ends after an
// error. Of more than most bytes in a store it yields the newest. older are the summaries that
// stand for what it leaves out then, and those whose covered messages are not known.
type Originals func(ctx context.Context, of []chat.Seq, most int64) (messages iter.Seq2[chat.Original, error], older []*chat.Message, err error)

// Mask returns a message with secrets masked, and remembers them. It returns m itself if
// there are none.
func Mask(m *chat.Message, secrets *redact.Secrets) *chat.Message {
	for _, clean := range []func(string) (string, redact.Found){secrets.Redact, secrets.MaskKnown} { // also in front of where they were found
		m = MapTexts(m, func(s string) string {
			s, _ = clean(s)
			return s
		})
	}
	return m
}
