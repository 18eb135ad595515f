package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// History stores the messages of one session. It uses only types of package chat, so that a
// store can implement it without importing this package.
type History interface {
	// Load returns the view, with whole also excluded messages. A session that does not
	// exist is empty.
	Load(ctx context.Context, whole bool) (chat.Log, error)
	// Append adds messages at the end, all or none, and then applies the plan. Its error
	// distinguishes a plan that could not be applied.
	Append(ctx context.Context, w chat.Write) error
}

// ErrUnknownSource is returned for the name of an undefined source.
var ErrUnknownSource = errors.New("unknown source")

// Source is a named History with rules for reading and writing it. NewSource returns one
// with the default rules.
type Source struct {
	// Name becomes the SourceID of messages read from it that have none.
	Name    string
	History History
	// LoadMessages enables reading.
	LoadMessages bool
	// StoreInputs and StoreOutputs enable writing the messages sent to the model and its
	// answers.
	StoreInputs, StoreOutputs bool
	// StoreContextMessages also writes messages added by other sources, or only by those in
	// StoreContextFrom.
	StoreContextMessages bool
	StoreContextFrom     []string
	// StoreExcluded also writes new messages that are compacted before they are written, as
	// excluded messages. Without it they are lost.
	StoreExcluded bool
	// SkipExcluded reads only the view. Without it all messages of the application are
	// read, as if nothing had been compacted.
	SkipExcluded bool
}

// NewSource returns a source that reads the view and writes everything but context
// messages, including excluded messages.
func NewSource(name string, h History) Source {
	return Source{
		Name: name, History: h, LoadMessages: true, StoreInputs: true, StoreOutputs: true, StoreExcluded: true, SkipExcluded: true,
	}
}

// ProviderConfig configures a Provider.
type ProviderConfig struct {
	// Sources are read in this order.
	Sources []Source
	// Context names further origins of messages: memory, retrieval, and so on.
	Context []string
	// Compacts names the source that New and After compact; it may be empty if there is
	// only one.
	Compacts string
	// Before compacts the messages that are read. Its result is not stored.
	Before plan.Strategy
	// New compacts new messages before they are written, without seeing others; After then
	// compacts the whole source. Their results are stored.
	New, After plan.Strategy
	Options    strategies.Options
}

// Provider reads and writes the history of a session around calls of a model. Compaction on
// reading affects only that call, on writing it is permanent. It has no state and is safe
// for concurrent use if its histories and strategies are.
type Provider struct{ ProviderConfig }

// Exchange holds the messages of one call of a model, or a part of them.
type Exchange struct {
	// Context was added by other sources, Inputs sent by the application, Outputs returned,
	// including tool results. They are written in this order.
	Context, Inputs, Outputs []chat.Message
}

// NewProvider returns a provider for a valid configuration. The error lists everything that is invalid.
func NewProvider(c ProviderConfig) (*Provider, error) {
	p := &Provider{c}
	var errs []error
	seen := map[string]bool{}
	for i, s := range c.Sources {
		switch {
		case s.Name == "":
			errs = append(errs, fmt.Errorf("source %d: want a name", i))
		case seen[s.Name]:
			errs = append(errs, fmt.Errorf("source %q: the name is taken", s.Name))
		case s.History == nil:
			errs = append(errs, fmt.Errorf("source %q: want a history", s.Name))
		}
		seen[s.Name] = true
		for _, name := range s.StoreContextFrom {
			errs = append(errs, p.checkSource(name, "source "+s.Name+": store_context_from"))
		}
		if len(s.StoreContextFrom) > 0 && !s.StoreContextMessages {
			errs = append(errs, fmt.Errorf("source %q: store_context_from goes with store_context_messages", s.Name))
		}
	}
	if len(c.Sources) == 0 {
		errs = append(errs, errors.New("want at least one source"))
	}
	switch {
	case c.Compacts != "" && !seen[c.Compacts]:
		errs = append(errs, unknownSource("compacts", c.Compacts, p.names()))
	case c.Compacts == "" && len(c.Sources) > 1 && (c.New != nil || c.After != nil):
		errs = append(errs, fmt.Errorf("compacts: want one of %s", strings.Join(p.names(), ", ")))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	if p.Compacts == "" {
		p.Compacts = p.Sources[0].Name
	}
	return p, nil
}

// names returns the names of the sources.
func (p *Provider) names() []string {
	var names []string
	for _, s := range p.Sources {
		names = append(names, s.Name)
	}
	return names
}

func (p *Provider) checkSource(name, where string) error {
	all := append(p.names(), p.Context...)
	if slices.Contains(all, name) {
		return nil
	}
	return unknownSource(where, name, all)
}

func unknownSource(where, name string, known []string) error {
	return fmt.Errorf("%s: %w %q, want one of %s", where, ErrUnknownSource, name, strings.Join(known, ", "))
}

// checkSources returns an error for messages with an unknown SourceID.
func (p *Provider) checkSources(messages []chat.Message) error {
	for i, m := range messages {
		if m.SourceID == "" {
			continue
		}
		if err := p.checkSource(m.SourceID, fmt.Sprintf("message %d", i)); err != nil {
			return err
		}
	}
	return nil
}

// Read returns the messages to send to the model: those of the sources followed by added,
// compacted by Before. It stores nothing.
func (p *Provider) Read(ctx context.Context, added ...chat.Message) (strategies.Compacted, error) {
	if err := p.checkSources(added); err != nil {
		return strategies.Compacted{}, fmt.Errorf("read: %w", err)
	}
	c := strategies.NewConversation(p.Options)
	for _, s := range p.Sources {
		if !s.LoadMessages {
			continue
		}
		log, err := s.History.Load(ctx, !s.SkipExcluded)
		if err != nil {
			return strategies.Compacted{}, fmt.Errorf("read source %s: %w", s.Name, err)
		}
		stale := false // the messages differ from the view on which the next message was written
		for i := range log.Records {
			r := &log.Records[i]
			if s.SkipExcluded && !r.Included || !s.SkipExcluded && !plan.FromApplication(r.Meta) {
				continue
			}
			stale = stale || !r.Included && !p.Options.FreeReasoning
			if stale && r.Signed() {
				if r.HoldsOnlyReasoning() {
					continue
				}
				r.Message = r.Message.WithoutReasoning()
			}
			if r.Message.SourceID == "" {
				r.Message.SourceID = s.Name
			}
			c.AppendRecord(*r)
		}
	}
	c.Append(added...)
	if p.Before == nil {
		return strategies.Compacted{Messages: c.View()}, nil
	}
	r, err := c.Compact(ctx, p.Before)
	if err != nil {
		return strategies.Compacted{Messages: c.View()}, fmt.Errorf("read: %w", err)
	}
	return strategies.Compacted{Messages: c.View(), Report: r}, nil
}

// Write stores an exchange in every source and compacts the one named by Compacts, which
// the report describes. If a strategy fails, the messages are stored uncompacted and the
// *StrategyError is returned.
func (p *Provider) Write(ctx context.Context, x Exchange) (strategies.Report, error) {
	if err := errors.Join(p.checkSources(x.Context), p.checkSources(x.Inputs), p.checkSources(x.Outputs)); err != nil {
		return strategies.Report{}, fmt.Errorf("write: %w", err)
	}
	var report strategies.Report
	var errs []error
	for _, s := range p.Sources {
		messages := s.messages(x)
		if s.Name != p.Compacts || p.New == nil && p.After == nil {
			if len(messages) > 0 {
				if err := s.History.Append(ctx, chat.Write{Messages: messages}); err != nil {
					errs = append(errs, fmt.Errorf("write source %s: %w", s.Name, err))
				}
			}
			continue
		}
		r, err := p.compact(ctx, s, messages)
		if report = r; err != nil {
			errs = append(errs, fmt.Errorf("write source %s: %w", s.Name, err))
		}
	}
	return report, errors.Join(errs...)
}

// messages returns the messages of an exchange that the source stores.
func (s Source) messages(x Exchange) []chat.Message {
	var out []chat.Message
	for _, m := range x.Context {
		from := len(s.StoreContextFrom) == 0 || slices.Contains(s.StoreContextFrom, m.SourceID)
		if s.StoreContextMessages && m.SourceID != s.Name && from {
			out = append(out, m)
		}
	}
	if s.StoreInputs {
		out = append(out, x.Inputs...)
	}
	if s.StoreOutputs {
		out = append(out, x.Outputs...)
	}
	return out
}
