package builtin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// dedupeReads replaces the result of a file read with a stub if the read was repeated later
// or the file was written.
type dedupeReads struct {
	reads, writes map[string]bool
	keys          []string
}

func newDedupeReads(a *plan.Args) (plan.Strategy, error) {
	return &dedupeReads{
		reads: nameSet(a.Strings("read_tools", []string{"read", "read_file", "view", "view_file", "open_file", "cat", "get_file_contents"},
			"tools that read a file; case is ignored in names of tools")),
		writes: nameSet(a.Strings("write_tools", []string{"write", "write_file", "create_file", "edit", "edit_file", "multiedit", "replace", "str_replace"},
			"tools that write to a file, so that earlier reads are out of date")),
		keys: a.Strings("path_keys", []string{"path", "file_path", "filepath", "file", "filename", "absolute_path", "target_file"},
			"arguments that name the file, of which the first given one counts"),
	}, nil
}

func nameSet(names []string) map[string]bool {
	set := map[string]bool{}
	for _, n := range names {
		set[strings.ToLower(n)] = true
	}
	return set
}

func (*dedupeReads) Name() string { return "dedupe_reads" }

// Reads implements plan.Reader. It names every included tool call, since only the content
// names the tool.
func (*dedupeReads) Reads(t *plan.Transcript) []chat.Seq {
	var out []chat.Seq
	for _, g := range t.Groups() {
		if g.Kind != chat.GroupToolCall {
			continue
		}
		for i := g.Start; i < g.End; i++ {
			if e := &t.Entries[i]; e.Included && (plan.MakesCalls(e) || e.Role == chat.RoleTool) {
				out = append(out, e.Seq)
			}
		}
	}
	return out
}

// Plan implements plan.Strategy. It goes from the newest call to the oldest.
func (s *dedupeReads) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	done, err := answeredCalls(t)
	if err != nil {
		return chat.Plan{}, err
	}
	var plan chat.Plan
	canRewrite := rewritable(t)
	newer := map[string]string{}   // ids of the newest calls by key of a read
	written := map[string]string{} // ids of the newest writes by path
	for _, c := range slices.Backward(done) {
		tool := strings.ToLower(c.call.Name)
		if !s.reads[tool] && !s.writes[tool] || failedResult(c.result) {
			continue
		}
		path, read := s.target(tool, c.call.Arguments)
		if s.writes[tool] {
			if _, known := written[path]; path != "" && !known {
				written[path] = c.call.ID
			}
			continue
		}
		note, label := "", strings.TrimSpace(c.call.Name+" "+path)
		if id, ok := newer[read]; ok {
			note = "[" + label + ": the same was read again later, see the result of call " + id + "]"
		} else if id, ok := written[path]; ok && path != "" {
			note = "[" + label + ": out of date, the file was changed later by call " + id + "]"
		}
		if _, known := newer[read]; !known {
			newer[read] = c.call.ID
		}
		if note == "" || !canRewrite(c.entry) || len(note) >= len(joinedText(c.result.Content)) && c.result.Content.Media() == 0 {
			continue
		}
		stub := *c.result
		stub.Content = chat.TextContent(note)
		plan.Additions = append(plan.Additions, replacement(&t.Entries[c.entry], stub, s.Name()))
	}
	slices.Reverse(plan.Additions)
	return plan, nil
}

// target returns the file of a call, "" if there is none, and a key that is equal for equal
// reads.
func (s *dedupeReads) target(tool, arguments string) (path, read string) {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return "", tool + "\x00" + arguments
	}
	for _, k := range s.keys {
		if raw, ok := args[k]; ok && json.Unmarshal(raw, &path) == nil && path != "" {
			break
		}
	}
	var b strings.Builder
	b.WriteString(tool)
	for _, k := range slices.Sorted(maps.Keys(args)) {
		b.WriteString("\x00" + k + "\x00" + string(args[k]))
	}
	return path, b.String()
}

// failedResult reports whether a result describes an error, and thus not the state of a
// file.
func failedResult(m *chat.Message) bool {
	text := strings.TrimLeft(m.Content.String(), " \t\r\n[(<{\"'")
	return len(text) >= 5 && strings.EqualFold(text[:5], "error")
}

// answeredCall is a call with its result, which is the given entry.
type answeredCall struct {
	call   *chat.ToolCall
	result *chat.Message
	entry  int
}

// answeredCalls returns the calls in the view that have a result in it, in order of the
// results. A result answers the first call with its id that has none yet.
func answeredCalls(t *plan.Transcript) ([]answeredCall, error) {
	var out []answeredCall
	for _, g := range t.Groups() {
		if g.Kind != chat.GroupToolCall {
			continue
		}
		var open []*chat.ToolCall
		for i := g.Start; i < g.End; i++ {
			e := &t.Entries[i]
			if !e.Included || !plan.MakesCalls(e) && e.Role != chat.RoleTool {
				continue
			}
			m, err := t.Read(i)
			if err != nil {
				return nil, err
			}
			for k := range m.ToolCalls {
				open = append(open, &m.ToolCalls[k])
			}
			if e.Role != chat.RoleTool {
				continue
			}
			k := slices.IndexFunc(open, func(c *chat.ToolCall) bool { return c.ID == m.ToolCallID })
			if k < 0 {
				continue
			}
			out = append(out, answeredCall{open[k], m, i})
			if k == 0 {
				open = open[1:] // the common case, without copying
			} else {
				open = slices.Delete(open, k, k+1)
			}
		}
	}
	return out, nil
}
