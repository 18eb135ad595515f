package summary

import (
	"context"
	"iter"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/redact"
)

// maxOriginals is how many bytes of the log a summary is made from, about 16 million tokens.
// Reading them takes about 15 seconds of a processor, which a worker shares with other runs.
const maxOriginals = 64 << 20

// originals are the messages of the application that a task covers, if earlier summaries stand
// for some of them. The zero value has none: the task's messages are all of them.
type originals struct {
	messages iter.Seq2[chat.Original, error]
	older    []*chat.Message
}

// readOriginals returns the originals of a task. It reads them once, so that a secret that one
// of them shows is masked in all, in the prompt and in the summary.
func readOriginals(ctx context.Context, t plan.Task, secrets *redact.Secrets) (originals, error) {
	if t.Originals == nil {
		return originals{}, nil
	}
	messages, older, err := t.Originals(ctx, maxOriginals)
	o := originals{messages, older}
	if err == nil {
		err = o.each(ctx, secrets, func(*chat.Message, chat.Seq) {})
	}
	if err != nil {
		return originals{}, storeError(err)
	}
	return o, nil
}

// each calls f with each message, masked.
func (o originals) each(ctx context.Context, secrets *redact.Secrets, f func(m *chat.Message, seq chat.Seq)) error {
	for message, err := range o.messages {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		f(plan.Mask(plainMessage(message.Message), secrets), message.Seq)
	}
	return nil
}

// readSources replaces stored replacements among the messages of a task by what they stand for.
func readSources(ctx context.Context, t *plan.Task) error {
	if t.Sources == nil {
		return nil
	}
	messages, kinds, seqs, err := t.Sources(ctx)
	if err != nil {
		return storeError(err)
	}
	if len(messages) > 0 {
		t.Messages, t.Kinds, t.Seqs = messages, kinds, seqs
	}
	return nil
}

// addOriginals adds the originals to the digest and the user's to the facts. They measure the
// source in place of the task's messages and the previous summary.
func (m *input) addOriginals(ctx context.Context, o originals) error {
	m.report.Messages, m.report.CoveredTokens = 0, 0
	for _, message := range o.older {
		said := plan.Mask(plainMessage(message), &m.secrets).Content.String()
		if body, _, ok := frame.Unwrap(said); ok {
			said = body
		}
		m.digest.AddPrevious(said)
		m.report.CoveredTokens += estimateTokens(said)
		m.unknown = true
	}
	err := o.each(ctx, &m.secrets, func(message *chat.Message, seq chat.Seq) {
		m.digest.Add(message)
		m.report.Messages++
		m.report.CoveredTokens += messageTokens(message)
		if !m.seqs {
			seq = 0
		}
		said := wordsOfUser(message)
		if said == "" {
			return
		}
		shown := *message
		shown.ID = numberOf(seq)
		m.said.add(&shown)
		m.sources.addSaid(seq, said)
		m.lastUser, m.lastSeq = cutCenter(said, maxAsk), seq
	})
	if err != nil {
		return storeError(err)
	}
	return nil
}
