package formats

import (
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// claudeQueued is a text that the user typed while the agent worked. Claude Code repeats it as
// a line of the user or as an attachment when the model gets it; older versions, and a program
// that was ended before, leave it in the queue alone.
type claudeQueued struct {
	content chat.Content
	at      time.Time
	after   int    // number of the message that it follows
	out     string // the operation that took it out of the queue: remove, to be handed over as it is, or dequeue, to be a line of the user
}

// queue reads an operation on the queue. Texts that the user takes back to edit (popAll) are
// removed.
func (s *claudeSession) queue(o object) {
	c, err := readContent(o["content"], fromAnthropicPart)
	text := strings.TrimSpace(c.String())
	if err != nil {
		return
	}
	switch op := o.String("operation"); op {
	case "enqueue":
		if text != "" && !strings.HasPrefix(text, "<task-notification>") {
			s.queued = append(s.queued, claudeQueued{content: c, at: takeTime(o, "timestamp"), after: s.next})
		}
	case "remove", "dequeue":
		for i := range s.queued {
			q := &s.queued[i]
			if q.out == "" && (op == "dequeue" || text == "" || strings.TrimSpace(q.content.String()) == text) {
				q.out, q.after = op, s.next
				return
			}
		}
	case "popAll":
		s.queued = slices.DeleteFunc(s.queued, func(q claudeQueued) bool { return q.out != "remove" })
	}
}

// dequeue removes from the queue the texts that a line of the user repeats. If it repeats none, the
// texts that were taken out of the queue for the line have another form there, as a command that was
// expanded.
func (s *claudeSession) dequeue(text string, typed bool) {
	done := map[string]bool{}
	text = "\n" + strings.TrimSpace(text) + "\n"
	s.queued = slices.DeleteFunc(s.queued, func(q claudeQueued) bool {
		line := "\n" + strings.TrimSpace(q.content.String()) + "\n"
		if !strings.Contains(text, line) {
			return false
		}
		again := done[line]
		done[line] = true
		return !again || typed && q.out == "dequeue"
	})
	if typed && len(done) == 0 {
		s.queued = slices.DeleteFunc(s.queued, func(q claudeQueued) bool { return q.out == "dequeue" })
	}
}

// takeQueued inserts the texts that stand in the queue alone, each after the results of the
// message that it follows, unless the user has left that message.
func (s *claudeSession) takeQueued(r *ReadReport) {
	for _, q := range s.queued {
		at, found := s.index(q.after)
		if !found && q.after > 0 {
			continue
		}
		if found {
			at++
		}
		for at < len(s.messages) && (s.messages[at].Role == chat.RoleTool || s.messages[at].number == q.after) {
			at++
		}
		m := claudeMessage{line: object{}, api: object{}, number: q.after}
		m.Message = chat.Message{Role: chat.RoleUser, Content: q.content, CreatedAt: q.at}
		s.messages = slices.Insert(s.messages, at, m)
		r.Messages++
		r.others("queue-operation", -1, 0)
	}
}
