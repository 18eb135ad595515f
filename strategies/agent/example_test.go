package agent_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/agent"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// memory is a store of one session. It stores no summaries, since the example writes none.
type memory struct {
	log      []chat.Record
	revision int64
}

// Load implements agent.History.
func (m *memory) Load(_ context.Context, whole bool) (chat.Log, error) {
	log := chat.Log{Last: chat.Seq(len(m.log)), Revision: m.revision}
	for _, r := range m.log {
		if whole || r.Included {
			log.Records = append(log.Records, r)
		}
	}
	return log, nil
}

// Append implements agent.History. A real store does this in one transaction, and refuses
// the plan if the view has changed since Load.
func (m *memory) Append(_ context.Context, w chat.Write) error {
	var pairer chat.Pairer
	for i := range m.log {
		pairer.Describe(&m.log[i].Message, m.log[i].Seq)
	}
	for _, message := range w.Messages {
		meta := pairer.Describe(&message, chat.Seq(len(m.log)+1))
		m.log = append(m.log, chat.Record{Meta: meta, Message: message, Included: true})
	}
	gone := w.Plan.Gone()
	for i := range m.log {
		if q := m.log[i].Seq; gone.Has(q) || w.Plan.Include.Has(q) {
			m.log[i].Included = !gone.Has(q)
		}
	}
	m.revision++
	return nil
}

// A Provider reads the history before a call of a model, and writes the exchange after it.
// Here every write keeps the newest two groups in the view.
func ExampleProvider() {
	window, err := builtin.Registry().New("sliding_window", plan.Params{"keep_last_groups": 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	provider, err := agent.NewProvider(agent.ProviderConfig{
		Sources: []agent.Source{agent.NewSource("chat", &memory{})},
		After:   window,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, question := range []string{"one", "two", "three"} {
		input := chat.Message{Role: chat.RoleUser, Content: chat.TextContent(question)}
		history, err := provider.Read(ctx, input)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("sent:", texts(history.Messages))
		answer := chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(strings.ToUpper(question))}
		if _, err := provider.Write(ctx, agent.Exchange{
			Inputs: []chat.Message{input}, Outputs: []chat.Message{answer},
		}); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// sent: one
	// sent: one ONE two
	// sent: two TWO three
}

func texts(messages []chat.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Content.String())
	}
	return strings.Join(out, " ")
}

// An Engine decides when a tool loop compresses its messages.
func ExampleEngine() {
	model := plan.Func(func(context.Context, plan.Request) (string, error) { return "They count files.", nil })
	engine, err := agent.NewEngine(agent.EngineOptions{Window: 100_000, Main: model})
	if err != nil {
		fmt.Println(err)
		return
	}
	engine.OnSessionStart("session-1")
	messages := []chat.Message{{Role: chat.RoleUser, Content: chat.TextContent("Count the files.")}}
	for range 30 {
		messages = append(messages,
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(strings.Repeat("thinking ", 1500))},
			chat.Message{Role: chat.RoleUser, Content: chat.TextContent("Go on.")},
		)
	}
	if _, compress := engine.Preflight(messages); compress {
		got, err := engine.Compress(context.Background(), messages, agent.CompressRequest{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("fewer messages:", len(got.Messages) < len(messages), "smaller:", got.After < got.Before)
	}
	fmt.Println(engine.Status().Compressions, "compression")
	// Output:
	// fewer messages: true smaller: true
	// 1 compression
}
