package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/worker"
)

const (
	// maxInput is the length of an input that is a string, in characters, of the Open Responses specification.
	maxInput = 10_485_760
	// itemMark begins the content of an item of this program.
	itemMark = "cpt1."
	// outputHeader says in which form a compaction is answered, whatever the key says.
	outputHeader = "Compactor-Output"
)

// responses registers the operation of the Open Responses specification. It has a handler of its
// own, as clients send fields that the specification does not name.
func (a *api) responses() {
	const path = "/v1/responses/compact"
	json := func(of any, text string) *huma.Response {
		return &huma.Response{Description: text, Content: map[string]*huma.MediaType{
			"application/json": {Schema: huma.SchemaFromType(a.OpenAPI().Components.Schemas, reflect.TypeOf(of))},
		}}
	}
	text := &huma.Schema{Type: huma.TypeString}
	a.OpenAPI().AddOperation(&huma.Operation{
		Method: http.MethodPost, Path: path, OperationID: "compact-response", Tags: []string{"responses"},
		Extensions: map[string]any{"x-scope": appends},
		Summary:    "Compact the input of a model, as the Open Responses specification has it",
		Description: "model is required; input is a string, a list of items, or null. Other fields are not read. The answer to equal " +
			"input is paid for once. Output are messages; or, with a key that was made with --output item, one item of type " +
			"compaction, which input may hold later.",
		Parameters: []*huma.Param{tenantParam, {
			Name: outputHeader, In: "header", Description: "The form of output, whatever the key says.",
			Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{store.OutputMessages, store.OutputItem}},
		}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{
			Type: huma.TypeObject, Required: []string{"model"}, Properties: map[string]*huma.Schema{"model": text, "input": {}},
		}}}},
		Responses: map[string]*huma.Response{
			"200": json(CompactedResponse{}, "The compacted input"), "default": json(OpenAIProblem{}, "The fault of the request"),
		},
	})
	a.mux.HandleFunc("POST "+path, a.s.raw(appends, func(w http.ResponseWriter, r *http.Request, c *caller) error {
		return a.s.compacts(func() error { return compactResponse(w, r, c) })
	}))
}

// CompactedResponse is the answer.
type CompactedResponse struct {
	ID        string            `json:"id"`
	Object    string            `json:"object" enum:"response.compaction"`
	CreatedAt int64             `json:"created_at"`
	Output    []json.RawMessage `json:"output"`
	Usage     ResponseUsage     `json:"usage" doc:"Tokens of input and of output."`
}

// ResponseUsage counts tokens.
type ResponseUsage struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int64 `json:"total_tokens"`
}

// refuse returns the problem of a parameter, with a code of OpenAI.
func refuse(param, code, detail string, args ...any) *Problem {
	p := problem(http.StatusBadRequest, code, detail, args...)
	p.Field = param
	return p
}

func compactResponse(w http.ResponseWriter, r *http.Request, c *caller) error {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return huma.NewError(http.StatusInternalServerError, "cannot read request body", err) // as the framework says
	}
	form := cmp.Or(r.Header.Get(outputHeader), c.key.Output, store.OutputMessages)
	if form != store.OutputMessages && form != store.OutputItem {
		return refuse("", "invalid_value", "%s: want %s or %s", outputHeader, store.OutputMessages, store.OutputItem)
	}
	ctx := context.WithoutCancel(r.Context()) // an answer that is paid for is stored: clients try again
	st, k := c.of("")
	sealed, err := c.server.o.Store.Worker.ItemCipher(ctx, k.Tenant)
	if err != nil {
		return err
	}
	s, err := readResponse(raw, sealed)
	if err != nil {
		return err
	}
	how := worker.Stateless{}
	if how.Policy, err = c.server.o.Planner.PolicyFor(ctx, st, k.Tenant, s.Model); err != nil {
		return err
	}
	result, err := c.compactStateless(ctx, s, how, "")
	if err != nil {
		return err
	}
	out := CompactedResponse{ID: idOf("resp_", raw), Object: "response.compaction", CreatedAt: time.Now().Unix()}
	out.Usage.Input, out.Usage.Output = int64(result.Report.Before.IncludedTokens), int64(result.Report.After.IncludedTokens)
	out.Usage.Total = out.Usage.Input + out.Usage.Output
	s.Messages = result.Conversation.View()
	if form == store.OutputMessages {
		s.Messages = spoken(s.Messages)
	}
	if out.Output, err = itemsOf(s, form == store.OutputMessages); err != nil {
		return err
	}
	if form == store.OutputItem {
		content, err := json.Marshal(out.Output)
		if err != nil {
			return err
		}
		item, err := json.Marshal(map[string]string{
			"type": "compaction", "id": idOf("cmp_", content), "encrypted_content": seal(sealed, content),
		})
		if err != nil {
			return err
		}
		out.Output = []json.RawMessage{item}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(out)
}

// idOf returns an id that equal content has again.
func idOf(prefix string, content []byte) string {
	sum := sha256.Sum256(content)
	return prefix + hex.EncodeToString(sum[:16])
}

// readResponse reads the model and the messages of a request.
func readResponse(raw []byte, sealed cipher.AEAD) (s chat.Session, err error) {
	var in struct {
		Model, Input json.RawMessage
		Previous     json.RawMessage `json:"previous_response_id"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return s, refuse("", "invalid_json", "the body is not a JSON object")
	}
	null := func(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
	if null(in.Model) || string(in.Model) == `""` {
		return s, refuse("model", "missing_required_parameter", "Missing required parameter: 'model'.")
	}
	if json.Unmarshal(in.Model, &s.Model) != nil {
		return s, refuse("model", "invalid_type", "model: want a string")
	}
	var text string
	var given []json.RawMessage
	switch {
	case null(in.Input) && !null(in.Previous):
		return s, refuse("previous_response_id", "unsupported_parameter", "No response is stored here, so that "+
			`previous_response_id alone names no conversation: send it as input. In the Agents SDK, OpenAIResponsesCompactionSession takes compactionMode: "input".`)
	case null(in.Input):
		return s, nil
	case json.Unmarshal(in.Input, &text) == nil:
		if utf8.RuneCountInString(text) > maxInput {
			return s, refuse("input", "string_above_max_length", "input: a string has at most %d characters", maxInput)
		}
		s.Messages = []chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(text)}}
		return s, nil
	case json.Unmarshal(in.Input, &given) != nil:
		return s, refuse("input", "invalid_type", "input: want a string, a list of items, or null")
	}
	var all []json.RawMessage
	for i, item := range given {
		var one struct {
			Type    string `json:"type"`
			Content string `json:"encrypted_content"`
		}
		_ = json.Unmarshal(item, &one) // the formats refuse others
		switch one.Type {
		case "compaction":
			opened, err := open(sealed, one.Content)
			if err != nil {
				return s, refuse(fmt.Sprintf("input[%d].encrypted_content", i), "invalid_encrypted_content",
					"input[%d]: the item was not made here for this tenant, or it was changed: send the messages that it stands for", i)
			}
			all = append(all, opened...)
		case "compaction_trigger": // asks for this operation
		case "item_reference":
			return s, refuse(fmt.Sprintf("input[%d]", i), "invalid_value", "input[%d]: no items are stored here: send the one that it names", i)
		default:
			all = append(all, item)
		}
	}
	if len(all) == 0 {
		return s, nil
	}
	doc, err := json.Marshal(map[string]any{"input": all})
	if err != nil {
		return s, err
	}
	reader, err := formats.NewReader(bytes.NewReader(doc), "responses")
	if err != nil {
		return s, err
	}
	read, err := reader.Next()
	if err != nil {
		_, detail, _ := strings.Cut(err.Error(), ": ") // without the line, as it is one
		return s, refuse("input", "invalid_value", "%s", detail)
	}
	s.Messages = read.Messages
	return s, nil
}

// spoken returns a view in which calls of tools and their results are texts of the assistant:
// clients keep messages alone, and some read items of tools in a form of their own.
func spoken(view []chat.Message) []chat.Message {
	results := map[string][]int{} // of a call's id, those that no call has yet: ids may repeat
	for i, m := range view {
		if m.Role == chat.RoleTool {
			results[m.ToolCallID] = append(results[m.ToolCallID], i)
		}
	}
	var out []chat.Message
	for i, m := range view {
		if m.Role == chat.RoleTool {
			continue
		}
		if len(m.ToolCalls) > 0 {
			parts := []string{m.Content.String()}
			for _, call := range m.ToolCalls {
				const text = "[Called the tool %s with %s. Its result:]\n%s"
				result, left := "", results[call.ID]
				if n := slices.IndexFunc(left, func(at int) bool { return at > i }); n >= 0 {
					result, results[call.ID] = view[left[n]].Content.String(), left[n+1:]
				}
				parts = append(parts, fmt.Sprintf(text, call.Name, call.Arguments, result))
			}
			m = chat.Message{ID: m.ID, Role: m.Role, Content: chat.TextContent(strings.TrimSpace(strings.Join(parts, "\n\n")))}
		}
		out = append(out, m)
	}
	return out
}

// itemsOf returns messages as items in the form of answers: all have an id, and messages a status and
// a list as content. plain leaves reasoning out.
func itemsOf(s chat.Session, plain bool) ([]json.RawMessage, error) {
	var written bytes.Buffer
	if _, err := formats.Write(&written, "responses", s, formats.Options{DropReasoning: plain}); err != nil {
		return nil, err
	}
	var doc struct {
		Instructions *string          `json:"instructions"`
		Input        []map[string]any `json:"input"`
	}
	read := json.NewDecoder(&written)
	read.UseNumber()
	if err := read.Decode(&doc); err != nil {
		return nil, err
	}
	if doc.Instructions != nil {
		doc.Input = slices.Insert(doc.Input, 0, map[string]any{"type": "message", "role": "system", "content": *doc.Instructions})
	}
	out := make([]json.RawMessage, 0, len(doc.Input))
	for i, item := range doc.Input {
		prefix := "item_"
		if item["type"] == "message" {
			prefix = "msg_"
			answered(item)
		}
		if item["type"] != "reasoning" {
			item["status"] = cmp.Or[any](item["status"], "completed")
		}
		if _, ok := item["id"].(string); !ok {
			content, err := json.Marshal(item)
			if err != nil {
				return nil, err
			}
			item["id"] = idOf(prefix, fmt.Appendf(content, "%d", i))
		}
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

// answered gives a message the content of an answer.
func answered(item map[string]any) {
	kind := "input_text"
	if item["role"] == "assistant" {
		kind = "output_text"
	}
	if text, ok := item["content"].(string); ok {
		item["content"] = []any{map[string]any{"type": kind, "text": text}}
	}
	parts, _ := item["content"].([]any)
	for _, p := range parts {
		if part, ok := p.(map[string]any); ok && part["type"] == "output_text" && part["annotations"] == nil {
			part["annotations"] = []any{}
		}
	}
}

// seal returns the encrypted content of an item.
func seal(sealed cipher.AEAD, content []byte) string {
	made := sealed.Seal(nil, nil, content, []byte(itemMark)) //nolint:gosec // the cipher draws a nonce for each item
	return itemMark + base64.RawURLEncoding.EncodeToString(made)
}

// open returns the items that seal has sealed.
func open(sealed cipher.AEAD, content string) (items []json.RawMessage, err error) {
	text, own := strings.CutPrefix(content, itemMark)
	if !own {
		return nil, errors.New("an item of another program")
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	if raw, err = sealed.Open(nil, nil, raw, []byte(itemMark)); err != nil {
		return nil, err
	}
	err = json.Unmarshal(raw, &items)
	return items, err
}
