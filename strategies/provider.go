package strategies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// History keeps the messages of one session. Its methods speak of package chat
// alone, so that a store can have them without knowing this package.
type History interface {
	// Load returns the view, or with whole also what is out of it. A session that
	// does not exist is an empty one.
	Load(ctx context.Context, whole bool) (chat.Log, error)
	// Append adds messages behind all others, all or none, and then does what the
	// plan wants. An error that is about the plan alone says so.
	Append(ctx context.Context, w chat.Write) error
}

// ErrUnknownSource is the error for a name that no source has.
var ErrUnknownSource = errors.New("unknown source")

// Source is a History under a name, with what is read from it and written to it.
// NewSource has the defaults.
type Source struct {
	// Name is the SourceID of what is read from it and has none.
	Name    string
	History History
	// LoadMessages: its messages are read.
	LoadMessages bool
	// StoreInputs and StoreOutputs: what goes to the model and what comes back is
	// written to it.
	StoreInputs, StoreOutputs bool
	// StoreContextMessages: so is what other sources add, or those of them that
	// StoreContextFrom names.
	StoreContextMessages bool
	StoreContextFrom     []string
	// StoreExcluded: new messages that are compacted away before they are written are
	// written all the same, out of the view. Without it they are gone for good.
	StoreExcluded bool
	// SkipExcluded: only the view is read. Without it everything that was said is, as
	// if nothing had been compacted.
	SkipExcluded bool
}

// NewSource loads and stores everything but context messages, keeps what is
// excluded, and reads the view.
func NewSource(name string, h History) Source {
	return Source{
		Name: name, History: h, LoadMessages: true, StoreInputs: true, StoreOutputs: true, StoreExcluded: true, SkipExcluded: true,
	}
}

// ProviderConfig says what a Provider does.
type ProviderConfig struct {
	// Sources are read in this order.
	Sources []Source
	// Context names what else messages may come from: memory, retrieval, and so on.
	Context []string
	// Compacts names the source that New and After work on; it may be empty where
	// there is one source.
	Compacts string
	// Before compacts what is read. Nothing of it is stored.
	Before plan.Strategy
	// New compacts new messages before they are written, seeing only them; After then
	// what the source holds with them. What they do is stored.
	New, After plan.Strategy
	Options    Options
}

// Provider is a session's history on its way to the model and back: what is read is
// compacted for this call alone, what is written for good. It holds no state, and is
// safe for concurrent use as far as its histories and strategies are.
type Provider struct{ ProviderConfig }

// Exchange is one call of a model, or a part of one.
type Exchange struct {
	// Context is what other sources added, Inputs what the application sent, Outputs
	// what came back, results of tools among it. They are written in this order.
	Context, Inputs, Outputs []chat.Message
}

// NewProvider checks the configuration. Its error names everything that is wrong.
func NewProvider(c ProviderConfig) (*Provider, error) {
	p := &Provider{c}
	var faults []error
	seen := map[string]bool{}
	for i, s := range c.Sources {
		switch {
		case s.Name == "":
			faults = append(faults, fmt.Errorf("source %d: want a name", i))
		case seen[s.Name]:
			faults = append(faults, fmt.Errorf("source %q: the name is taken", s.Name))
		case s.History == nil:
			faults = append(faults, fmt.Errorf("source %q: want a history", s.Name))
		}
		seen[s.Name] = true
		for _, name := range s.StoreContextFrom {
			faults = append(faults, p.known(name, "source "+s.Name+": store_context_from"))
		}
		if len(s.StoreContextFrom) > 0 && !s.StoreContextMessages {
			faults = append(faults, fmt.Errorf("source %q: store_context_from goes with store_context_messages", s.Name))
		}
	}
	if len(c.Sources) == 0 {
		faults = append(faults, errors.New("want at least one source"))
	}
	switch {
	case c.Compacts != "" && !seen[c.Compacts]:
		faults = append(faults, unknownSource("compacts", c.Compacts, p.names()))
	case c.Compacts == "" && len(c.Sources) > 1 && (c.New != nil || c.After != nil):
		faults = append(faults, fmt.Errorf("compacts: want one of %s", strings.Join(p.names(), ", ")))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	if p.Compacts == "" {
		p.Compacts = p.Sources[0].Name
	}
	return p, nil
}

// names returns those of the sources.
func (p *Provider) names() []string {
	var names []string
	for _, s := range p.Sources {
		names = append(names, s.Name)
	}
	return names
}

func (p *Provider) known(name, where string) error {
	all := append(p.names(), p.Context...)
	if slices.Contains(all, name) {
		return nil
	}
	return unknownSource(where, name, all)
}

func unknownSource(where, name string, known []string) error {
	return fmt.Errorf("%s: %w %q, want one of %s", where, ErrUnknownSource, name, strings.Join(known, ", "))
}

// attributed is the error for messages of sources that nobody has named.
func (p *Provider) attributed(messages []chat.Message) error {
	for i, m := range messages {
		if m.SourceID == "" {
			continue
		}
		if err := p.known(m.SourceID, fmt.Sprintf("message %d", i)); err != nil {
			return err
		}
	}
	return nil
}

// Read returns what the model is to be given: what the sources hold, what other sources
// add behind it, compacted by Before. What Before writes stands in the view with what
// it stands for gone; nothing is stored.
func (p *Provider) Read(ctx context.Context, added ...chat.Message) (Compacted, error) {
	if err := p.attributed(added); err != nil {
		return Compacted{}, fmt.Errorf("read: %w", err)
	}
	c := NewConversation(p.Options)
	for _, s := range p.Sources {
		if !s.LoadMessages {
			continue
		}
		log, err := s.History.Load(ctx, !s.SkipExcluded)
		if err != nil {
			return Compacted{}, fmt.Errorf("read source %s: %w", s.Name, err)
		}
		for i := range log.Records {
			r := &log.Records[i]
			if s.SkipExcluded && !r.Included || !s.SkipExcluded && !plan.FromApplication(r.Meta) {
				continue
			}
			if r.Message.SourceID == "" {
				r.Message.SourceID = s.Name
			}
			c.AppendRecord(*r)
		}
	}
	c.Append(added...)
	if p.Before == nil {
		return Compacted{Messages: c.View()}, nil
	}
	r, err := c.Compact(ctx, p.Before)
	if err != nil {
		return Compacted{Messages: c.View()}, fmt.Errorf("read: %w", err)
	}
	return Compacted{Messages: c.View(), Report: r}, nil
}

// Write stores an exchange in every source, and compacts in the one that Compacts
// names. The report is of that one. Where a strategy fails the messages are stored
// uncompacted and the error, a *StrategyError, is returned.
func (p *Provider) Write(ctx context.Context, x Exchange) (Report, error) {
	if err := errors.Join(p.attributed(x.Context), p.attributed(x.Inputs), p.attributed(x.Outputs)); err != nil {
		return Report{}, fmt.Errorf("write: %w", err)
	}
	var report Report
	var faults []error
	for _, s := range p.Sources {
		messages := s.takes(x)
		if s.Name != p.Compacts || p.New == nil && p.After == nil {
			if len(messages) > 0 {
				if err := s.History.Append(ctx, chat.Write{Messages: messages}); err != nil {
					faults = append(faults, fmt.Errorf("write source %s: %w", s.Name, err))
				}
			}
			continue
		}
		r, err := p.compact(ctx, s, messages)
		if report = r; err != nil {
			faults = append(faults, fmt.Errorf("write source %s: %w", s.Name, err))
		}
	}
	return report, errors.Join(faults...)
}

// takes returns what of an exchange goes into the source.
func (s Source) takes(x Exchange) []chat.Message {
	var out []chat.Message
	for _, m := range x.Context {
		if s.StoreContextMessages && m.SourceID != s.Name && (len(s.StoreContextFrom) == 0 || slices.Contains(s.StoreContextFrom, m.SourceID)) {
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
