package bench

import (
	"fmt"
	"math/rand/v2"

	"github.com/sessionstore/compactor/cmd/internal/dev/backlog"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// generatedSessions is the number of distinct sessions of a policy's job path, sessionModel their model.
const (
	generatedSessions = 40
	sessionModel      = "gpt-4o"
)

// codingSession returns a session of a coding agent: requests, readings of files, searches, edits, tests and
// commands, with about that many tokens. The same seed gives the same session. In one of ten results stands
// a line with a value that looks like a secret.
func codingSession(seed uint64, tokens int) []chat.Message {
	topic := []string{"go", "python"}[seed%2]
	ms := backlog.Continue(backlog.Session{Model: sessionModel, Labels: map[string]string{"app": "coding", "topic": topic}}, seed, tokens)
	const task = "You are a coding agent. Read before you edit, and run the tests after it."
	ms = append([]chat.Message{{ID: "m-0000", Role: chat.RoleSystem, Content: chat.TextContent(task)}}, ms...)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // reproducible
	for i := range ms {
		if ms[i].Role == chat.RoleTool && r.IntN(10) == 0 {
			secrets := fmt.Sprintf("\nSTORE_PASSWORD=%016x api_key: %016x%016x", r.Uint64(), r.Uint64(), r.Uint64())
			ms[i].Content = chat.TextContent(ms[i].Content.String() + secrets)
		}
	}
	return ms
}

// sessions returns the distinct sessions of the job path of a policy, counted as an application's.
func (o CompactOptions) sessions(s *system) ([][]store.NewMessage, error) {
	if o.By == nil {
		return nil, nil
	}
	s.planner.Counter = func(model string) plan.Counter { return tokens.ForModel(model) }
	all := o.Recorded
	for seed := uint64(0); len(o.Recorded) == 0 && seed < generatedSessions; seed++ {
		all = append(all, codingSession(seed, 2*int(o.Tokens)))
	}
	var out [][]store.NewMessage
	counter := tokens.ForModel(sessionModel)
	for _, ms := range all {
		msgs, sizes := []store.NewMessage{}, []chat.Tokens{0} // and those of the messages before each
		for i := range ms {
			m := store.NewMessage{Message: ms[i], Tokens: counter.Message(&ms[i]), Counter: counter.Name()}
			size := sizes[i] + m.Tokens
			if sizes = append(sizes, size); size > o.Tokens {
				break
			}
			msgs = append(msgs, m)
		}
		// A call must not end the history without its results.
		n := len(msgs)
		for n > 0 && n < len(ms) && (ms[n].Role == chat.RoleTool || len(ms[n-1].ToolCalls) > 0) {
			n--
		}
		if sizes[len(sizes)-1] > o.Tokens && sizes[n] >= s.planner.Policy.StartTokens {
			out = append(out, msgs[:n])
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("compact: no session has more than %d tokens", o.Tokens)
	}
	return out, nil
}

// mean returns the mean number of messages of sessions, and their mean size as JSON.
func mean(sessions [][]store.NewMessage) (messages int, bytes int64) {
	for _, msgs := range sessions {
		messages += len(msgs)
		for i := range msgs {
			bytes += int64(len(msgs[i].AppendJSON(nil)))
		}
	}
	return messages / len(sessions), bytes / int64(len(sessions))
}
