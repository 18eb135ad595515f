package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// views registers the operation that reads views.
func (a *api) views() {
	register(a, operation{
		scope: reads, method: http.MethodGet, path: "/v1/sessions/{session}/view", id: "get-view", summary: "The messages to send to the model",
		more: func(op *huma.Operation) {
			// The answer is written as the database has it, so its schema is given here.
			schema := a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[View](), true, "View")
			op.Responses = map[string]*huma.Response{
				"200": {Description: "The view", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}},
				"304": {Description: "The view is the one of If-None-Match"},
			}
			op.Errors = append(op.Errors, http.StatusConflict)
		},
	}, getView)
}

// View is the document of an answer with a view. Messages have the form that was asked for.
type View struct {
	Revision      int64          `json:"revision" doc:"Each change of the view but by appended messages makes a new one."`
	LastSeq       int64          `json:"last_seq"`
	PrefixChanged *bool          `json:"prefix_changed,omitempty" doc:"With prefix_changed_since: whether the host must start a new thread or cache."`
	Messages      []any          `json:"messages,omitempty" doc:"Of the shapes chat-completions, anthropic and ai-sdk."`
	System        any            `json:"system,omitempty" doc:"Of the shape anthropic."`
	Instructions  string         `json:"instructions,omitempty" doc:"Of the shape responses."`
	Input         []any          `json:"input,omitempty" doc:"Of the shape responses."`
	IDs           []string       `json:"ids,omitempty" doc:"Of the shape responses with ids: the ids of the messages of instructions, if there are any, and of each item of input. A message can be several items."`
	Losses        map[string]int `json:"losses,omitempty" doc:"The parts that the shape cannot hold, by kind."`
	Cut           *Cut           `json:"cut,omitempty" doc:"With max_tokens."`
	Summaries     []any          `json:"summaries,omitempty" doc:"With tail: the summaries of runs."`
	Kept          []any          `json:"kept,omitempty" doc:"With tail: what else stands before the tail, such as the system prompt and pinned messages."`
	Tail          []any          `json:"tail,omitempty" doc:"With tail: the messages from tail_start_seq on, and before them the call that the first of them answer."`
	TailStartSeq  int64          `json:"tail_start_seq,omitempty" doc:"With tail: no run has changed anything from this seq on."`
}

// Cut describes how a view was cut for one answer.
type Cut struct {
	MaxTokens    chat.Tokens `json:"max_tokens"`
	TokensBefore chat.Tokens `json:"tokens_before"`
	TokensAfter  chat.Tokens `json:"tokens_after"`
	Removed      int         `json:"removed" doc:"Messages that are not in the answer."`
	Fits         bool        `json:"fits" doc:"False if what has to stay is larger: the system prompt, pinned messages, the newest ones."`
}

type viewIn struct {
	SessionPath
	Shape       string `query:"shape" default:"chat-completions" enum:"chat-completions,anthropic,responses,ai-sdk" doc:"The form of the messages; ai-sdk is ModelMessage of the Vercel AI SDK."`
	IDs         bool   `query:"ids" doc:"Give chat-completions messages as they are stored, with their ids and the keys of formats that they were read from, as a replacement of the view takes them. Providers refuse these. With shape responses, give the ids of the messages of the items beside them."`
	Tail        bool   `query:"tail" doc:"Give summaries, what else is kept, and the tail apart; with shape chat-completions alone."`
	MaxTokens   int64  `query:"max_tokens" minimum:"0" doc:"Cut the view to so many tokens, for this answer only; 0 for no limit."`
	Preset      string `query:"preset" doc:"The preset by which max_tokens cuts, with extracts for summaries; without it, the oldest messages go."`
	Since       string `query:"prefix_changed_since" doc:"The ETag of a view that was read before, or its revision."`
	IfNoneMatch string `header:"If-None-Match" doc:"ETags of views that are known. A revision alone matches, whatever was appended since."`
}

type viewOut struct {
	Status       int
	ETag         string `header:"ETag" doc:"The revision and the last message of the session, for If-None-Match, If-Match and prefix_changed_since."`
	CacheControl string `header:"Cache-Control"`
	ContentType  string `header:"Content-Type" hidden:"true"`
	Body         []byte
}

func getView(ctx context.Context, c *caller, in *viewIn) (*viewOut, error) {
	switch {
	case in.Shape != "chat-completions" && in.Tail:
		return nil, invalid("query.shape", "shape: with tail, want chat-completions")
	case in.IDs && in.Shape != "chat-completions" && in.Shape != "responses":
		return nil, invalid("query.shape", "shape: with ids, want chat-completions or responses")
	case in.MaxTokens > 0 && in.Tail:
		return nil, invalid("query.max_tokens", "max_tokens: not with tail")
	case in.MaxTokens == 0 && in.Preset != "":
		return nil, invalid("query.preset", "preset: give max_tokens, too")
	}
	st, k := c.of(in.Session)
	out := &viewOut{Status: http.StatusOK, ContentType: "application/json", CacheControl: "private, no-cache"}
	if in.IfNoneMatch != "" {
		now, err := st.Reader.ViewState(ctx, k)
		if err != nil {
			return nil, err
		}
		if known(in.IfNoneMatch, now) {
			out.Status, out.ETag, out.ContentType = http.StatusNotModified, etag(now), ""
			return out, nil
		}
	}
	since := ""
	if in.Since != "" {
		revision, seen, err := parseTag("query.prefix_changed_since", in.Since)
		if err != nil {
			return nil, err
		}
		changed, err := st.Reader.PrefixChanged(ctx, k, revision, seen)
		if err != nil {
			return nil, err
		}
		since = `,"prefix_changed":` + strconv.FormatBool(changed)
	}
	now, rest, err := viewAs(ctx, c, st, k, in)
	if err != nil {
		return nil, err
	}
	out.ETag = etag(now)
	var b bytes.Buffer
	b.Grow(len(rest) + 100)
	b.WriteString(`{"revision":` + strconv.FormatInt(now.Revision, 10) + `,"last_seq":` +
		strconv.FormatInt(int64(now.LastSeq), 10) + since)
	b.Write(rest)
	out.Body = b.Bytes()
	return out, nil
}

// known reports whether one of the tags of an If-None-Match header is that of a view.
func known(tags string, now store.ViewState) bool {
	for tag := range strings.SplitSeq(tags, ",") {
		if strings.TrimSpace(tag) == "*" {
			return true
		}
		revision, last, err := parseTag("", tag)
		if err == nil && revision == now.Revision && (last == now.LastSeq || !strings.Contains(tag, "-")) {
			return true
		}
	}
	return false
}

// viewAs returns a view in the shape that was asked for: the rest of a JSON object.
func viewAs(ctx context.Context, c *caller, st *store.Store, k store.Key, in *viewIn) (store.ViewState, []byte, error) {
	var rest bytes.Buffer
	losses := formats.Losses{}
	write := func(list string, messages []chat.Message) { // as providers take them, or as they are stored with their ids
		rest.WriteString(`,"` + list + `":[`)
		for i, m := range messages {
			if i > 0 {
				rest.WriteByte(',')
			}
			if id := m.ID; in.IDs {
				m = m.Body()
				m.ID = id
			} else {
				m = formats.WithoutKeys(m.Body(), losses)
			}
			rest.Write(m.AppendJSON(rest.AvailableBuffer()))
		}
		rest.WriteByte(']')
	}
	member := func(name string, value any) {
		raw, _ := json.Marshal(value) // numbers
		rest.WriteString(`,"` + name + `":` + string(raw))
	}
	end := func(now store.ViewState, last string, err error) (store.ViewState, []byte, error) {
		if len(losses) > 0 {
			member("losses", losses)
		}
		rest.WriteString(last)
		return now, rest.Bytes(), err
	}
	if in.Shape == "chat-completions" && in.MaxTokens == 0 && !in.Tail {
		v, err := st.Reader.RawView(ctx, k, in.IDs)
		if err != nil || in.IDs || !v.FormatKeys {
			return v.ViewState, append(append([]byte(`,"messages":`), v.Messages...), '}'), err
		}
		var messages []chat.Message
		err = json.Unmarshal(v.Messages, &messages)
		write("messages", messages)
		return end(v.ViewState, "}", err)
	}
	v, err := st.Reader.WholeView(ctx, k)
	if err != nil {
		return v.ViewState, nil, err
	}
	if in.Tail {
		summaries, kept, tail := v.Parts()
		write("summaries", messagesOf(summaries))
		write("kept", messagesOf(kept))
		write("tail", messagesOf(tail))
		member("tail_start_seq", v.TailStart)
		return end(v.ViewState, "}", nil)
	}
	session := chat.Session{Messages: messagesOf(v.Messages)}
	if in.MaxTokens > 0 {
		var cut Cut
		if session.Messages, cut, err = c.server.cut(ctx, v, chat.Tokens(in.MaxTokens), in.Preset); err != nil {
			return v.ViewState, nil, err
		}
		member("cut", cut)
	}
	if in.Shape == "chat-completions" {
		write("messages", session.Messages)
		return end(v.ViewState, "}", nil)
	}
	ids := make([]string, len(session.Messages))
	for i := range session.Messages {
		ids[i], session.Messages[i] = session.Messages[i].ID, session.Messages[i].Body() // ids would count as lost
	}
	var doc bytes.Buffer
	switch {
	case in.Shape == "ai-sdk":
		losses, err = formats.WriteModelMessages(&doc, session)
	case in.IDs:
		var of []int
		of, losses, err = formats.WriteItems(&doc, session)
		named := make([]string, len(of))
		for i, m := range of {
			named[i] = ids[m]
		}
		member("ids", named)
	default:
		losses, err = formats.Write(&doc, in.Shape, session, formats.Options{})
	}
	return end(v.ViewState, ","+strings.TrimPrefix(strings.TrimSpace(doc.String()), "{"), err)
}

// messagesOf returns the messages of stored ones.
func messagesOf(stored []store.Stored) []chat.Message {
	out := make([]chat.Message, len(stored))
	for i, m := range stored {
		out[i] = m.Message
	}
	return out
}

// cut returns a view within so many tokens, by the pipeline of a preset, whose summaries are extracts,
// or without its oldest messages. It is valid, and nothing is stored.
func (s *Server) cut(ctx context.Context, v store.WholeView, most chat.Tokens, preset string) ([]chat.Message, Cut, error) {
	models, pol := s.o.Config.Models, s.o.Config.Policy
	o := strategies.Options{
		Counter: models.ForModel(v.Model), Target: most, Fallback: true,
		FreeReasoning: !pol.BindsReasoning(v.Model, tokens.BindsReasoning),
	}
	conversation := strategies.NewConversation(o)
	for _, m := range v.Messages {
		conversation.AppendRecord(chat.Record{Meta: chat.Meta{Kind: m.Kind}, Message: m.Message, Included: true, Pinned: m.Pinned})
	}
	_, before := conversation.Size()
	pipeline := o.Pipeline(nil)
	if preset != "" {
		named, err := policy.PresetNamed(preset)
		if err != nil {
			return nil, Cut{}, invalid("query.preset", "preset: want one of %s", strings.Join(policy.PresetNames(), ", "))
		}
		pol = named.Over(policy.Default())
		pol.Summary.Writer = policy.WriterExtractive
		limits := pol.Limits(v.Model, models.Window)
		limits.Target = most
		at := time.Now().UTC().Truncate(24 * time.Hour)
		if pipeline, _, err = strategies.Build(s.o.Registry, pol, limits, summary.Options{At: at}); err != nil {
			return nil, Cut{}, err
		}
	}
	if before > most {
		if _, err := conversation.Compact(ctx, pipeline); err != nil {
			return nil, Cut{}, err
		}
	}
	_, after := conversation.Size()
	return conversation.View(), Cut{most, before, after, len(conversation.Excluded()), after <= most}, nil
}
