package backlog

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

const (
	// DefaultSessions is the number of sessions where Options names none.
	DefaultSessions = 400

	medianShare = 0.42
	sigmaShare  = 0.7
	mostShare   = 1.25
	leastTokens = 300
	spread      = 10 * 24 * time.Hour
)

// The kinds of session, as in the label "app".
const (
	Support = "support"
	Coding  = "coding"
)

// The defects, as in the label "defect".
const (
	AbandonedCall = "abandoned_call"
	OrphanResult  = "orphan_result"
)

// Options say what to generate. The zero value is the default backlog of seed 0.
type Options struct {
	// Seed chooses the backlog. Session i of a seed is the same whatever Sessions is.
	Seed uint64
	// Sessions is how many; 0 is DefaultSessions.
	Sessions int
	// End is the time no message is later than; the zero time is a fixed day, for
	// output that does not depend on the clock.
	End time.Time
}

// Session is one conversation.
type Session struct {
	ID    string
	Model string
	// Labels are app (support or coding), topic, and defect where there is one.
	Labels   map[string]string
	Messages []chat.Message
}

// Generate makes the sessions one by one, so that the backlog never has to be in
// memory as a whole.
func Generate(o Options) iter.Seq[Session] {
	n := cmp.Or(o.Sessions, DefaultSessions)
	end := o.End
	if end.IsZero() {
		end = time.Date(2026, time.January, 31, 18, 0, 0, 0, time.UTC)
	}
	return func(yield func(Session) bool) {
		words := parseVocabulary()
		for i := range n {
			r := rand.New(rand.NewPCG(o.Seed, uint64(i))) //nolint:gosec // the same seed is to give the same backlog
			if !yield(generate(r, words, i, end)) {
				return
			}
		}
	}
}

// Continue makes the messages with which the application goes on with a session:
// whole turns of the same kind, until they come to about that many tokens (by
// characters / 4). They start after the last message; the session is not changed.
// The same seed gives the same messages. A session without labels is talked with
// about orders.
func Continue(s Session, seed uint64, tokens int) []chat.Message {
	r := rand.New(rand.NewPCG(seed, uint64(len(s.Messages)))) //nolint:gosec // the same seed is to give the same messages
	w := &writer{
		gen:    newGen(r, parseVocabulary()),
		number: len(s.Messages),
		window: window(s.Model),
	}
	for _, m := range s.Messages {
		if m.CreatedAt.After(w.now) {
			w.now = m.CreatedAt
		}
		w.reasoning = w.reasoning || m.Reasoning != ""
	}
	w.script(cmp.Or(s.Labels["app"], Support), cmp.Or(s.Labels["topic"], "shop"))
	for w.tokens < tokens {
		w.turn()
	}
	return w.messages
}

func generate(r *rand.Rand, words vocabulary, i int, end time.Time) Session {
	s := Session{Labels: map[string]string{"app": Support}}
	topic := pick(r, "airline", "shop")
	var models []string
	var shares []float64
	if r.Float64() < 0.42 {
		s.Labels["app"] = Coding
		topic = pick(r, "go", "python")
		models, shares = []string{"gpt-4-32k", "gpt-3.5-turbo", "gpt-4", "gpt-4o"}, []float64{0.42, 0.38, 0.12, 0.08}
	} else {
		models, shares = []string{"gpt-4", "gpt-3.5-turbo", "gpt-4o"}, []float64{0.62, 0.36, 0.02}
	}
	s.Labels["topic"] = topic
	s.Model = weighted(r, models, shares)
	share := min(mostShare, medianShare*math.Exp(sigmaShare*r.NormFloat64()))
	goal := max(leastTokens, int(share*float64(window(s.Model))))

	w := &writer{gen: newGen(r, words), window: window(s.Model), now: time.Unix(0, 0).UTC()}
	w.reasoning = s.Labels["app"] == Coding && r.Float64() < 0.30
	w.script(s.Labels["app"], topic)
	s.ID = fmt.Sprintf("%s-%04d-%s", topic, i+1, w.fill("~hex6~"))
	defect, at := "", 0
	if r.Float64() < 0.02 {
		defect, at = pick(r, AbandonedCall, OrphanResult), goal*(1+r.IntN(3))/4
	}
	w.add(chat.Message{Role: chat.RoleSystem, Content: chat.TextContent(w.system())}, 0)
	for w.tokens < goal {
		if defect != "" && w.tokens >= at && s.Labels["defect"] == "" {
			w.defect(defect)
			s.Labels["defect"] = defect
		}
		w.turn()
	}
	if defect != "" && s.Labels["defect"] == "" {
		w.defect(defect)
		s.Labels["defect"] = defect
		w.turn()
	}
	s.Messages = w.messages
	shift := end.UTC().Truncate(time.Millisecond).Add(-time.Duration(r.Int64N(int64(spread)))).Sub(w.now)
	for k := range s.Messages {
		m := &s.Messages[k]
		m.CreatedAt = m.CreatedAt.Add(shift).Truncate(time.Millisecond)
	}
	return s
}

// window is the context window of the models used here.
func window(model string) int {
	switch model {
	case "gpt-4":
		return 8_192
	case "gpt-3.5-turbo":
		return 16_385
	case "gpt-4-32k":
		return 32_768
	}
	return 128_000
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func weighted[T any](r *rand.Rand, from []T, shares []float64) T {
	x := r.Float64()
	for i, share := range shares {
		if x -= share; x < 0 {
			return from[i]
		}
	}
	return from[len(from)-1]
}
