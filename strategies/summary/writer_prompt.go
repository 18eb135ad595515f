package summary

import (
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
)

// prompt returns what the model is asked about a part of the messages.
func (w *Writer) prompt(m *input, previous string, part []*chat.Message) (system, user string) {
	return Prompt{
		Budget: chat.Tokens(m.prose), Focus: m.focus, Custom: m.instruction,
		Script: m.evidence.Script(), Cut: m.cut, Generation: m.updates + m.report.Parts,
	}.Form(previous, part)
}

// trim shortens what the model reads, as the policy says. Where that leaves nothing to
// read, it is left to within and take.
func (w *Writer) trim(m *input, room int) {
	t := Trimmer{Counter: octets{}, Limit: chat.Tokens(room * w.o.Settings.MaxParts), At: w.o.At}
	steps := w.o.Settings.PreTrim
	messages, cuts := t.Run(steps, m.messages)
	if len(messages) == 0 {
		return
	}
	m.messages = messages
	for i, cut := range cuts {
		m.trimmed(steps[i].Step, cut)
	}
}

// trimmed remembers what the model is not shown.
func (m *input) trimmed(step string, cut Trimmed) {
	if cut == (Trimmed{}) {
		return
	}
	m.cut = m.cut.Plus(cut)
	m.report.Trimmed = append(m.report.Trimmed, Trim{Step: step, Messages: cut.Messages, Outputs: cut.Outputs, Tokens: int(cut.Tokens)})
}

// octets counts messages as a prompt shows them, rather too high.
type octets struct{}

// Name implements tokens.Counter.
func (octets) Name() string { return "octets" }

// Message implements tokens.Counter.
func (octets) Message(m *chat.Message) chat.Tokens { return chat.Tokens(sizeOf(m)) }

// bound keeps the answer within what the model writes, and within a quarter of what it
// reads: the notes so far and the messages have to have room beside it.
func (w *Writer) bound(m *input, model llm.Profile) {
	most := model.Window / 4
	if model.MaxOutput > 0 {
		most = min(most, model.MaxOutput-model.ReasoningTokens)
	}
	if w.callTokens(m) > most {
		m.prose = w.proseWithin(most)
	}
}

// room returns how many tokens of messages one prompt can hold, beside a previous summary
// and all that frames them.
func (w *Writer) room(m *input, model llm.Profile) (int, error) {
	system, user := w.prompt(m, "-", nil) // an update is asked for with more words
	answer := w.callTokens(m)
	frame := roughly(system) + roughly(user) + max(roughly(m.previous), answer)
	room := int(0.95*float64(model.Window)) - frame - answer - model.ReasoningTokens
	if room < leastRoom {
		return 0, &plan.Failure{Code: string(llm.ContextTooLong)}
	}
	return room, nil
}

// Text implements tokens.Counter.
func (octets) Text(s string) chat.Tokens { return chat.Tokens(roughly(s)) }
