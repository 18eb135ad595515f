// Package backlog generates conversations for demonstrations and measurements: support
// chats and coding-agent sessions with tool calls, in shapes and sizes like those of real
// deployments. The same seed gives the same backlog.
//
// The texts, tools and weights are in the folder data: 58 % are support chats, 42 % coding
// agents. Lengths are log-normal shares of the model's window; a quarter of the sessions
// exceed 0.75 of it. The default backlog has some 26,000 messages, 5 million tokens
// (characters / 4) and 20 MB of text. 2 % of the sessions have a defect found in real logs.
// All names and companies are fictional.
package backlog

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// spread is the period before Options.End in which the sessions end.
const spread = 10 * 24 * time.Hour

// windows maps models to their context windows; others have 128,000 tokens.
var windows = map[string]int{"gpt-4": 8_192, "gpt-3.5-turbo": 16_385, "gpt-4-32k": 32_768}

func window(model string) int { return cmp.Or(windows[model], 128_000) }

// Options selects a backlog. The zero value is the default backlog of seed 0.
type Options struct {
	// Seed determines the backlog. Session i of a seed does not depend on Sessions.
	Seed uint64
	// Sessions is the number of sessions. Defaults to 400.
	Sessions int
	// End is the latest time of a message. Defaults to a fixed day.
	End time.Time
}

// Session holds one generated conversation.
type Session struct {
	ID    string
	Model string
	// Labels has the keys app (support or coding), topic and defect: abandoned_call for a
	// call without a result, orphan_result for a result without a call.
	Labels   map[string]string
	Messages []chat.Message
}

// Generate yields the sessions one by one, so that only one is in memory.
func Generate(o Options) iter.Seq[Session] {
	end := o.End
	if end.IsZero() {
		end = time.Date(2026, time.January, 31, 18, 0, 0, 0, time.UTC)
	}
	return func(yield func(Session) bool) {
		for i := range cmp.Or(o.Sessions, 400) {
			if !yield(generate(newWriter(o.Seed, i, ""), i, end)) {
				return
			}
		}
	}
}

// Continue returns messages that continue s: whole turns of the same kind with about the
// given number of tokens (characters / 4), later than the last message of s. The same seed
// gives the same messages. A session without labels continues as a support chat of a shop.
func Continue(s Session, seed uint64, tokens int) []chat.Message {
	w := newWriter(seed, len(s.Messages), cmp.Or(s.Labels["app"], "support")+"/"+cmp.Or(s.Labels["topic"], "shop"))
	w.number, w.window = len(s.Messages), window(s.Model)
	for _, m := range s.Messages {
		if m.CreatedAt.After(w.now) {
			w.now = m.CreatedAt
		}
		w.reasoning = w.reasoning || m.Reasoning != ""
	}
	for w.tokens < tokens {
		w.turn()
	}
	return w.messages
}

func generate(w *writer, i int, end time.Time) Session {
	s := Session{Model: w.pick("models"), Labels: map[string]string{"app": w.app, "topic": w.topic}}
	s.ID = fmt.Sprintf("%s-%04d-%s", w.topic, i+1, w.fill("~hex6~"))
	w.reasoning = w.pick("reasoning") == "yes"
	w.window = window(s.Model)
	share := min(1.25, 0.42*math.Exp(0.7*w.r.NormFloat64()))
	goal := max(300, int(share*float64(w.window)))
	defect, at := w.pick("defect"), goal*(1+w.r.IntN(3))/4
	w.add(chat.Message{Role: chat.RoleSystem, Content: chat.TextContent(w.line("system"))})
	for w.tokens < goal || defect != "" {
		w.turn()
		if defect != "" && w.tokens >= at {
			s.Labels["defect"] = defect
			w.defect(defect)
			w.turn()
			defect = ""
		}
	}
	s.Messages = w.messages
	shift := end.UTC().Truncate(time.Millisecond).Add(-time.Duration(w.r.Int64N(int64(spread)))).Sub(w.now)
	for k := range s.Messages {
		m := &s.Messages[k]
		m.CreatedAt = m.CreatedAt.Add(shift).Truncate(time.Millisecond)
	}
	return s
}
