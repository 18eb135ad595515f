// Package agent compacts conversations inside an agent's own process, without the
// compactor's worker.
//
// A [Provider] reads histories from sources, which stores or the host implement, compacts
// them and writes new messages back:
//
//	provider, err := agent.NewProvider(agent.ProviderConfig{
//		Sources: []agent.Source{agent.NewSource("chat", store)}, After: strategy,
//	})
//	history, err := provider.Read(ctx, input)
//	// send history.Messages to the model
//	report, err := provider.Write(ctx, agent.Exchange{Inputs: inputs, Outputs: outputs})
//
// An [Engine] decides when a tool loop compresses its messages, and keeps the state of each
// session. [Trigger], [SplitMidLoop] and [JoinMidLoop] serve hosts with a loop of their own.
// [FeedbackOn] describes a compression to its user.
package agent
