package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// appending registers the operations that write messages.
func (a *api) appending() {
	register(a, operation{
		scope: appends, method: http.MethodPost, path: "/v1/sessions/{session}/messages", id: "append-messages",
		summary: "Append messages, creating the session if necessary",
		more: raw("A message, a list of messages or a document in the format. With instead_of, a list may be empty.",
			http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed, http.StatusPreconditionRequired),
	}, appendMessages)
	register(a, operation{
		scope: appends, method: http.MethodPut, path: "/v1/sessions/{session}/view", id: "replace-view",
		summary: "Replace the view by a history that was compacted elsewhere",
		more: raw("A list of chat-completions messages, or an object with messages, with the ids of those that are known. "+
			"An empty list clears the view.",
			http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed, http.StatusPreconditionRequired),
	}, replaceView)
}

// raw describes the body of an operation that reads it itself, and adds the statuses of its errors.
func raw(body string, statuses ...int) func(*huma.Operation) {
	return func(op *huma.Operation) {
		op.SkipValidateBody = true
		op.RequestBody = &huma.RequestBody{
			Description: body, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{}}},
		}
		fails(statuses...)(op)
		fails(http.StatusRequestTimeout)(op)
	}
}

// etag returns the tag of a view: its revision and the last message, which change with it.
func etag(v store.ViewState) string {
	return `"` + strconv.FormatInt(v.Revision, 10) + "-" + strconv.FormatInt(int64(v.LastSeq), 10) + `"`
}

// parseTag reads a tag of a view, or a revision alone, with or without quotes; last is 0 then.
func parseTag(field, tag string) (revision int64, last chat.Seq, err error) {
	first, second, both := strings.Cut(strings.Trim(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), `"`), "-")
	revision, err = strconv.ParseInt(first, 10, 64)
	if err == nil && both {
		var n int64
		n, err = strconv.ParseInt(second, 10, 64)
		last = chat.Seq(n)
	}
	if err != nil || revision < 0 || last < 0 {
		return 0, 0, invalid(field, "%s: want the ETag of a view, or a revision", field)
	}
	return revision, last, nil
}

// noRevision returns the problem of a request without the ETag that it needs.
func noRevision(detail string) *Problem {
	p := problem(http.StatusPreconditionRequired, "no_revision", detail)
	p.Field = "header.If-Match"
	return p
}

type appendIn struct {
	SessionPath
	Format  string   `query:"format" default:"auto" enum:"auto,chat,responses,anthropic,sharegpt,claude-code,codex,pi,qwen-code,gemini-cli,gemini,copilot-cli,kimi,grok,cline,goose,opencode,openhands,langchain,vercel,mastra,bedrock,chatgpt"`
	Model   string   `query:"model" maxLength:"200" doc:"The model of the session from now on, if a message is new; by default that of the document, or the present one."`
	Key     string   `header:"Idempotency-Key" maxLength:"1000" doc:"For messages without ids: the same key appends the same messages once, for ever, and is a conflict with others. An id of its own does that for a message."`
	Instead []string `query:"instead_of,explode" maxItems:"10000" doc:"Ids of messages that leave the view in the same change, each with the call, results and reasoning that belong to it, as the application has taken them back. It needs If-Match with the ETag of the present view, unless the Idempotency-Key was used before: then nothing changes."`
	IfMatch string   `header:"If-Match" doc:"The ETag or revision of the view on which the messages were written. If the view has changed since, they are appended all the same, but their signed reasoning is not in the view: stale and reasoning_excluded say so. A revision that the session has not had yet is refused."`
	RawBody []byte
}

func appendMessages(ctx context.Context, c *caller, in *appendIn) (*body[store.Appended], error) {
	o := store.AppendOptions{Model: in.Model, Format: in.Format, Key: in.Key, Most: c.server.o.Config.API.MaxBatch}
	if len(in.Instead) > 0 && (in.IfMatch == "" || in.IfMatch == "*") {
		return nil, noRevision("give the ETag of the view that the messages of instead_of leave in If-Match")
	}
	if in.IfMatch != "" && in.IfMatch != "*" {
		revision, last, err := parseTag("header.If-Match", in.IfMatch)
		if err != nil {
			return nil, err
		}
		o.Revision, o.Instead, o.Seen, o.By = &revision, in.Instead, store.ViewState{Revision: revision, LastSeq: last}, c.by()
	}
	st, k := c.of(in.Session)
	out, err := st.AppendRaw(ctx, k, in.RawBody, o)
	return answer(out, inBody(err))
}

// inBody returns an error of an operation on messages with its field, where the body is at fault.
func inBody(err error) error {
	if !errors.Is(err, store.ErrInvalid) {
		return err
	}
	return invalid("body", "%s", err.Error())
}

type replaceIn struct {
	SessionPath
	IfMatch string `header:"If-Match" doc:"The ETag of the view that was compacted: messages that were appended since stay in the view behind the others. With a revision alone, they leave it."`
	RawBody []byte
}

type replaceOut struct {
	ETag string `header:"ETag" doc:"That of the view of now."`
	Body ReplacedView
}

// ReplacedView is the run of a replacement, and the view after it.
type ReplacedView struct {
	store.RunRow
	ViewRevision int64    `json:"view_revision" doc:"That of the run, or of a repair of what it left: a result without its call, for instance."`
	LastSeq      chat.Seq `json:"last_seq"`
}

func replaceView(ctx context.Context, c *caller, in *replaceIn) (*replaceOut, error) {
	if in.IfMatch == "" {
		return nil, noRevision("give the ETag of the view that was compacted in If-Match")
	}
	revision, last, err := parseTag("header.If-Match", in.IfMatch)
	if err != nil {
		return nil, err
	}
	st, k := c.of(in.Session)
	run, now, err := st.ReplaceRaw(ctx, k, revision, last, in.RawBody, c.by())
	if err != nil {
		return nil, inBody(err)
	}
	row, err := st.Run(ctx, run)
	return &replaceOut{etag(now), ReplacedView{row, now.Revision, now.LastSeq}}, err
}
