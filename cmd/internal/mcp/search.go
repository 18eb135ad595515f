package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// The values of in.
const (
	inMessages  = "messages"
	inSummaries = "summaries"
	inBoth      = "both"
)

// maxSnippet bounds a snippet, in bytes: a match may be as long as the query.
const maxSnippet = 600

// Hits is the answer of history_search.
type Hits struct {
	Answer
	Hits []Hit `json:"hits" jsonschema:"the newest first"`
}

// Hit is a message or a summary that contains a text.
type Hit struct {
	Seq     chat.Seq    `json:"seq"`
	ID      string      `json:"id,omitempty"`
	Kind    string      `json:"kind" jsonschema:"message or summary"`
	Role    chat.Role   `json:"role"`
	InView  bool        `json:"in_context" jsonschema:"whether the message is in your context"`
	Run     store.RunID `json:"excluded_by,omitempty" jsonschema:"the compaction that took it out"`
	Summary string      `json:"summarized_by,omitempty" jsonschema:"the summary in its place"`
	Tokens  chat.Tokens `json:"tokens" jsonschema:"of the whole message"`
	Snippet string      `json:"snippet"`
}

type searchIn struct {
	Query  string    `json:"query" jsonschema:"the text to find, as it was written: a word, a path, an id, a part of a sentence"`
	In     string    `json:"in,omitempty" jsonschema:"messages (with calls of tools and their results), summaries, or both (the default)"`
	Role   chat.Role `json:"role,omitempty" jsonschema:"only messages of this role; tool for the results of tools"`
	Tool   string    `json:"tool,omitempty" jsonschema:"only calls of the tool of this name, and their results"`
	Before chat.Seq  `json:"before_seq,omitempty" jsonschema:"only messages before this one"`
	After  chat.Seq  `json:"after_seq,omitempty" jsonschema:"only messages behind this one"`
	Limit  int       `json:"limit,omitempty" jsonschema:"how many hits, at most: 10 without it"`
}

// search answers history_search.
func (h *History) search(ctx context.Context, s *session, in searchIn) (Hits, error) {
	if strings.TrimSpace(in.Query) == "" {
		return Hits{}, fmt.Errorf("%w: query: want a text to find", store.ErrInvalid)
	}
	in.In, in.Limit = cmp.Or(in.In, inBoth), cmp.Or(in.Limit, defaultLimit)
	kinds := map[string][]chat.Kind{
		inMessages: {chat.KindSource}, inSummaries: {chat.KindSummary}, inBoth: {chat.KindSource, chat.KindSummary},
	}[in.In]
	out := Hits{Answer: s.answer("%s", in.scope()), Hits: []Hit{}}
	found, next, err := h.Store.Reader.Search(ctx, h.Key, store.SearchFilter{
		Text: in.Query, Role: in.Role, Tool: in.Tool, Kinds: kinds, After: in.After, Before: in.Before, Newest: true, Limit: in.Limit,
	})
	if err != nil {
		return out, err
	}
	var used chat.Tokens
	for i := range found {
		m := &found[i]
		hit := Hit{
			Seq: m.Seq, ID: clip(m.ID), Kind: "message", Role: m.Role, InView: m.Included, Run: m.ExcludedBy, Summary: clip(m.SummarizedBy),
			Tokens: m.Tokens, Snippet: part(m.Snippet, 0, maxSnippet),
		}
		if m.Kind == chat.KindSummary {
			hit.Kind = "summary"
		}
		if used += s.cost(hit) + 1; i > 0 && used > maxHits {
			next = found[i-1].Seq
			break
		}
		out.Hits = append(out.Hits, hit)
	}
	if next > 0 {
		out.LeftOut = fmt.Sprintf("hits before message %d: none were looked for there", next)
		out.Next = in.goOn(next)
	} else if len(out.Hits) == 0 {
		out.LeftOut = "nothing: there is no hit. A part of a word, a path or an id matches more"
	}
	if next == 0 && len(out.Hits) > 0 {
		out.Next = &NextCall{"history_read", map[string]any{"around": out.Hits[0].Seq}}
		if out.Hits[0].Kind == "summary" {
			out.Next = &NextCall{"summary_show", map[string]any{"id": out.Hits[0].ID}}
		}
	}
	return out, nil
}

// maxHits bounds the hits of an answer, in tokens.
const maxHits = 6000

// scope says in words where a search looks.
func (in *searchIn) scope() string {
	what := map[string]string{inMessages: "all messages", inSummaries: "all summaries", inBoth: "all messages and summaries"}[in.In]
	if in.Role != "" {
		what += " of role " + string(in.Role)
	}
	if in.Tool != "" {
		what += fmt.Sprintf(" that call %q or answer its calls", clip(in.Tool))
	}
	if in.After > 0 {
		what += fmt.Sprintf(" behind message %d", in.After)
	}
	if in.Before > 0 {
		what += fmt.Sprintf(" before message %d", in.Before)
	}
	return what + ", in your context or not, archived or not,"
}

// goOn returns the call that searches before a message.
func (in *searchIn) goOn(before chat.Seq) *NextCall {
	args := map[string]any{"query": in.Query, "in": in.In, "before_seq": before, "limit": in.Limit}
	if in.Role != "" {
		args["role"] = in.Role
	}
	if in.Tool != "" {
		args["tool"] = in.Tool
	}
	if in.After > 0 {
		args["after_seq"] = in.After
	}
	return &NextCall{"history_search", args}
}
