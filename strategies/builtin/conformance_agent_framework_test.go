package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func init() { checkers["agent_framework"] = checkAgentFramework }

// afCase is a vector of Agent Framework: here the strategy is a flat object.
type afCase struct {
	Strategy  plan.Params       `json:"strategy"`
	Tokenizer string            `json:"tokenizer"`
	Messages  []json.RawMessage `json:"messages"`
	Repeat    int               `json:"repeat"`
	// Log lists the levels that were logged in each pass, nil where nothing was.
	Log      [][]string     `json:"log"`
	Expected map[string]any `json:"expected"`
}

func checkAgentFramework(v *vector) error {
	c := afCase{Repeat: 1}
	if err := json.Unmarshal(v.Raw, &c); err != nil {
		return err
	}
	l := &afList{bySeq: map[chat.Seq]*afNote{}}
	clients := &afClients{list: l}
	strategy, err := clients.strategy(c.Strategy)
	if want, ok := c.Expected["error"].(map[string]any); ok {
		return sameFault(fmt.Sprint(want["message"]), err)
	}
	if err != nil {
		return err
	}
	got, err := c.run(strategy, clients)
	if err != nil {
		return err
	}
	if c.Log != nil && !cmp.Equal(c.Log, clients.log) {
		return fmt.Errorf("logged %v, want %v", clients.log, c.Log)
	}
	if len(clients.calls) > 0 {
		got["client_calls"] = clients.calls
	}
	for _, call := range list(c.Expected["client_calls"]) {
		delete(call.(map[string]any), "user") // its hash is there too
	}
	raw, err := json.Marshal(got)
	if err != nil {
		return err
	}
	plain := map[string]any{}
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	if diff := cmp.Diff(c.Expected, plain); diff != "" {
		return fmt.Errorf("-want +got:\n%s", diff)
	}
	return c.guarded()
}

// guarded runs the strategy on the case as this package would, behind the guard, and returns
// what is wrong with the view then (I2, I4, I7).
func (c *afCase) guarded() error {
	clients := &afClients{}
	strategy, err := clients.strategy(c.Strategy)
	if err != nil {
		return err
	}
	s := sessiontest.New()
	for i, raw := range c.Messages {
		n, err := readNote(i, raw)
		if err != nil {
			return err
		}
		s.Add(n.plain())
		s.Included[n.entry.Seq] = n.entry.Included
	}
	for range c.Repeat {
		var fail failures
		r := s.RunLimited(&fail, pipeline.Pipeline{Steps: []plan.Strategy{strategy}}, true)
		if fail.err != nil {
			return fmt.Errorf("guarded: %w", fail.err)
		}
		if r.WouldGrow { // the view stays as it was stored
			if faults := chat.Check(s.View()); len(faults) > 0 {
				return fmt.Errorf("guarded: faults %v", faults)
			}
		} else if err := s.Invariants(true); err != nil {
			return fmt.Errorf("guarded: %w", err)
		}
	}
	return nil
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// sameFault checks that an error is about the parameter that the reference names
// first in its own. What it says of the strategies that it makes a context window
// of is said of the thresholds here that they are made from.
func sameFault(want string, err error) error {
	name, _, _ := strings.Cut(want, " ")
	names := []string{name}
	switch name {
	case "max_n":
		names = append(names, "truncation_threshold")
	case "compact_to":
		names = append(names, "tool_eviction_threshold")
	}
	if err == nil {
		return fmt.Errorf("want %s, got no error", want)
	}
	for _, name := range names {
		if strings.Contains(err.Error(), ": "+name+": ") {
			return nil
		}
	}
	return fmt.Errorf("want %s, got %w", want, err)
}

// run applies the strategy as often as the case says and describes what became of
// the messages.
func (c *afCase) run(s plan.Strategy, clients *afClients) (map[string]any, error) {
	l := clients.list
	t := &plan.Transcript{Counter: l}
	for i, raw := range c.Messages {
		n, err := readNote(i, raw)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		l.notes = append(l.notes, n)
		l.bySeq[n.entry.Seq] = n
	}
	_, l.counting = s.(pipeline.Stager)
	var groups []any
	var changes []any
	for pass := range c.Repeat {
		clients.log = append(clients.log, []string{})
		l.annotate(-1)
		if l.counting || c.Tokenizer != "" {
			l.count()
		}
		if pass == 0 {
			groups = l.runs()
			for _, n := range l.notes {
				n.entry.Tokens = n.count()
				t.Entries = append(t.Entries, n.entry)
			}
			t.Groups()
			var err error
			if l.draft, err = pipeline.NewDraft(t); err != nil {
				return nil, err
			}
		}
		l.sync()
		changed, err := l.draft.Run(context.Background(), s, nil)
		if err != nil {
			return nil, err
		}
		changes = append(changes, changed)
	}
	got, err := l.outcome()
	if err != nil {
		return nil, err
	}
	got["groups"], got["changed"] = groups, changes[len(changes)-1]
	if len(changes) > 1 {
		got["changed_all"] = changes
	}
	return got, nil
}

// outcome describes the list as the vectors do.
func (l *afList) outcome() (map[string]any, error) {
	got := map[string]any{}
	excluded, reasons, tokens, ids := []any{}, []any{}, []any{}, []any{}
	projected, gone, replaced := []any{}, []any{}, map[string]any{}
	counted, named, included := false, false, chat.Tokens(0)
	var view []chat.Seq
	for _, e := range l.draft.Transcript().Entries {
		if e.Included {
			view = append(view, e.Seq)
		}
	}
	for at, n := range l.notes {
		in := l.draft.Entries()[n.entry.Seq-1].Included
		if reason := l.draft.Reason(n.entry.Seq); reason != "" {
			n.reason = reason
		}
		if in {
			included += n.count()
			if len(view) == 0 || view[0] != n.entry.Seq {
				return nil, fmt.Errorf("message %d of the list stands elsewhere in the view", at)
			}
			view = view[1:]
		}
		if n.input < 0 {
			summary := l.summary(at)
			if in {
				projected = append(projected, map[string]any{"summary": summary})
			} else {
				summary["reason"] = n.reason
				gone = append(gone, summary)
			}
			continue
		}
		if in {
			projected = append(projected, map[string]any{"ref": n.input})
		}
		excluded, reasons = append(excluded, !in), append(reasons, orNull(n.reason))
		ids, tokens = append(ids, orNull(n.id)), append(tokens, n.tokens)
		counted = counted || n.tokens != nil
		named = named || n.id != "msg_"+strconv.Itoa(n.input)
		if n.by != "" {
			replaced[strconv.Itoa(n.input)] = n.by
		}
	}
	if len(view) > 0 {
		return nil, fmt.Errorf("%d messages of the view are not in the list", len(view))
	}
	if _, sum := l.draft.Transcript().Included(); sum != included {
		return nil, fmt.Errorf("view has %d tokens, the list %d", sum, included)
	}
	maps.Copy(got, map[string]any{
		"excluded": excluded, "reasons": reasons, "projected": projected, "included_tokens": included,
	})
	for key, x := range map[string]struct {
		there bool
		value any
	}{
		"ids": {named, ids}, "tokens": {counted, tokens}, "summarized_by": {len(replaced) > 0, replaced},
		"excluded_summaries": {len(gone) > 0, gone}, "final_groups": {len(l.notes) > len(ids), l.runs()},
	} {
		if x.there {
			got[key] = x.value
		}
	}
	return got, nil
}

// summary describes the summary at an index of the list.
func (l *afList) summary(at int) map[string]any {
	n := l.notes[at]
	indexes := make([]any, len(n.ofMessages))
	for i, id := range n.ofMessages {
		k := slices.IndexFunc(l.notes, func(n *afNote) bool { return n.input >= 0 && n.id == id })
		if k >= 0 {
			indexes[i] = l.notes[k].input
		}
	}
	out := map[string]any{
		"role": n.entry.Role, "text": n.entry.Message.Content.Text, "message_id": n.id, "at": at,
		"summary_of_message_ids": n.ofMessages, "summary_of_message_indices": indexes,
		"summary_of_group_ids": n.ofGroups, "group_index": n.group.index, "token_count": n.tokens,
	}
	if n.by != "" {
		out["summarized_by"] = n.by
	}
	return out
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
