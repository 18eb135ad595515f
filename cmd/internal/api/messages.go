package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// messages registers the operations on the messages of a session.
func (a *api) messages() {
	const all = "/v1/sessions/{session}/messages"
	register(a, operation{
		scope: reads, method: http.MethodGet, path: all, id: "list-messages",
		summary: "All that was said in a session, or what of it a search finds",
	}, listMessages)
	register(a, operation{
		scope: reads, method: http.MethodGet, path: all + "/{seq}", id: "get-message",
		summary: "A message, the run that took it out of the view, and the summaries in its place",
	}, getMessage)
	register(a, operation{
		scope: operates, method: http.MethodPost, path: all + "/{seq}/restore", id: "restore-message",
		summary: "Bring a message back into the view", more: conflicts,
	}, restoreMessage)
}

type listMessagesIn struct {
	SessionPath
	Page
	Query  string   `query:"q" maxLength:"500" doc:"Only messages with this in their text, reasoning or calls, whatever the case."`
	Role   string   `query:"role" doc:"Only messages with this role."`
	Tool   string   `query:"tool" doc:"Only calls of this tool and their results."`
	Kind   string   `query:"kind" enum:"messages,summaries" doc:"Only what was said, or only summaries and replacements, which runs wrote."`
	Since  chat.Seq `query:"after_seq" minimum:"0" doc:"Only messages after this one."`
	Before chat.Seq `query:"before_seq" minimum:"0" doc:"Only messages before this one."`
	Order  string   `query:"order" enum:"oldest,newest" default:"oldest" doc:"Which messages come first."`
	Seqs   string   `query:"seqs" maxLength:"20000" doc:"Only these, as ranges: {[3,8),[9,10)}. At most limit of them, without other filters."`
	After  string   `query:"after" doc:"next of the page before, which may have fewer messages than its limit, or none."`
}

// FoundMessage is a message of a list.
type FoundMessage struct {
	store.MessageRow
	Snippet string `json:"snippet,omitempty" doc:"With q, the text around the first match."`
}

func listMessages(ctx context.Context, c *caller, in *listMessagesIn) (*body[list[FoundMessage]], error) {
	limit, after, err := in.numbered(c, in.After)
	if err != nil {
		return nil, err
	}
	st, k := c.of(in.Session)
	if in.Seqs != "" {
		seqs, err := chat.ParseRanges(in.Seqs)
		if err != nil || seqs.Len() > int64(limit) {
			return nil, invalid("query.seqs", "seqs: want ranges such as {[3,8),[9,10)}, of at most %d messages", limit)
		}
		msgs, err := st.Among(ctx, k, seqs)
		rows := make([]FoundMessage, len(msgs))
		for i := range msgs {
			rows[i].MessageRow = msgs[i].Row()
		}
		return items(rows, err)
	}
	f := store.SearchFilter{
		Text: in.Query, Role: chat.Role(in.Role), Tool: in.Tool, After: in.Since, Before: in.Before,
		Newest: in.Order == "newest", Limit: limit,
	}
	switch {
	case f.Newest && after > 0:
		f.Before = min(chat.Seq(after), cmp.Or(f.Before, chat.Open))
	case !f.Newest:
		f.After = max(f.After, chat.Seq(after))
	}
	switch in.Kind {
	case "messages":
		f.Kinds = []chat.Kind{chat.KindSource}
	case "summaries":
		f.Kinds = []chat.Kind{chat.KindSummary, chat.KindReplacement}
	}
	found, next, err := st.Reader.Search(ctx, k, f)
	rows := make([]FoundMessage, len(found))
	for i := range found {
		rows[i] = FoundMessage{found[i].Row(), found[i].Snippet}
	}
	return page(rows, int64(next), err)
}

// MessagePath is the parameters of paths below a message.
type MessagePath struct {
	SessionPath
	Seq chat.Seq `path:"seq" minimum:"1" doc:"The number of the message in its session."`
}

// MessageDetail is a message with the reason for its place.
type MessageDetail struct {
	Message   store.MessageRow   `json:"message"`
	Run       *store.RunRow      `json:"run,omitempty" doc:"The run that took it out of the view, or its reasoning."`
	CoveredBy []store.MessageRow `json:"covered_by" doc:"The summaries and replacements in its place, and those in their place."`
}

func getMessage(ctx context.Context, c *caller, in *MessagePath) (*body[MessageDetail], error) {
	st, k := c.of(in.Session)
	m, err := st.Reader.Message(ctx, k, in.Seq)
	if err != nil {
		return nil, err
	}
	out := MessageDetail{Message: m.Row()}
	if id := cmp.Or(m.ExcludedBy, m.ReasoningExcludedBy); id > 0 {
		run, err := st.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		out.Run = &run
	}
	covering, err := st.Reader.Covering(ctx, k, in.Seq)
	out.CoveredBy = store.MessageRows(covering)
	return answer(out, err)
}

// RestoredMessage is the answer to a restore.
type RestoredMessage struct {
	Message  string `json:"message" doc:"Its id."`
	Included bool   `json:"included" doc:"It is in the view already; otherwise the next run, which is due now, brings it back."`
	Pinned   bool   `json:"pinned" doc:"It was pinned, so that no run takes it out again; DELETE …/pins/{message} takes that back."`
}

func restoreMessage(ctx context.Context, c *caller, in *MessagePath) (*body[RestoredMessage], error) {
	st, k := c.of(in.Session)
	m, err := st.Admin.BringBack(ctx, k, in.Seq)
	return answer(RestoredMessage{Message: m.ID, Included: m.Included, Pinned: m.Pinned}, err)
}
