package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/policy"
)

// object is JSON that tests build.
type object = map[string]any

// orders returns turns of a user and an assistant, of about 60 tokens each.
func orders(turns int) (out []object) {
	for i := range turns {
		out = append(
			out,
			object{"role": "user", "content": fmt.Sprintf("Where is order #AB%05d? %s", i, strings.Repeat("It should be there. ", 12))},
			object{"role": "assistant", "content": fmt.Sprintf("Order #AB%05d is open. %s", i, strings.Repeat("Somebody looks at it. ", 12))},
		)
	}
	return out
}

// scripted starts a server with a model that plays steps, and a pipeline that asks it.
func scripted(t *testing.T, steps ...llmtest.Step) (*server, *llmtest.Server) {
	t.Helper()
	model := llmtest.New(steps...)
	address, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	return newServer(t, func(c *config.Config) {
		c.LLM.Models = []llm.Profile{{Name: "m", BaseURL: address, Window: 32_000}}
		c.Policy.Pipeline = []policy.Step{{Strategy: "handoff", Params: map[string]any{"protect_last_n": 4, "tail_token_budget": 2000}}}
		c.Policy.Summary.OnFailure = policy.OnFailureExtractive
	}), model
}

type compactedBody struct {
	Format string
	View   json.RawMessage
	Report struct {
		Before, After struct{ Messages, Tokens int64 }
		Changed       bool
		TargetChosen  bool `json:"target_chosen"`
		Steps         []object
		Excluded      []object
	}
}

func TestMessagesAreCompactedAndNotStored(t *testing.T) {
	s, model := scripted(t)
	key := s.key(t, "append", "acme")
	for name, c := range map[string]struct {
		body   object
		format string
		view   string // is in it
		gone   int
	}{
		"pipeline":        {object{"messages": orders(5), "pipeline": []object{{"strategy": "keep_last_n_messages", "params": object{"n": 4}}}}, "chat", `"messages":[`, 6},
		"a preset":        {object{"messages": orders(40), "preset": "strict", "target_tokens": 2000}, "chat", "CONVERSATION SUMMARY", 60},
		"the policy":      {object{"messages": orders(40), "model": "gpt-5.2"}, "chat", `{"model":"gpt-5.2","messages":[`, 60},
		"its summary":     {object{"messages": orders(40)}, "chat", "CONVERSATION SUMMARY", 60},
		"named policy":    {object{"messages": orders(40), "policy": "default", "target_tokens": 100_000}, "chat", "", 0},
		"strategies":      {object{"messages": orders(40), "strategies": []string{"extractive"}, "target_tokens": 3000}, "chat", "CONVERSATION SUMMARY", 60},
		"into Anthropic":  {object{"messages": orders(2), "to": "anthropic"}, "anthropic", `"messages":[`, 0},
		"from Anthropic":  {object{"messages": object{"system": "Be brief.", "messages": []object{{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": "x", "content": "a"}}}}}}, "anthropic", "Be brief.", 1},
		"from items":      {object{"messages": []object{{"type": "message", "role": "user", "content": "hi"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": "1"}}}, "responses", `"call_id":"c"`, 0},
		"text of a file":  {object{"messages": "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"content\":\"ho\"}\n", "to": "codex"}, "codex", `[{"type":"session_meta"`, 0},
		"message with id": {object{"messages": []object{{"role": "user", "content": "hi", "id": "a"}, {"role": "user", "content": "hi"}}, "pin": []string{"a"}, "pipeline": []object{{"strategy": "keep_last_n_messages", "params": object{"n": 1}}}}, "chat", `"id":"a"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := into[compactedBody](t, s.do(t, key, http.MethodPost, "/v1/compact", c.body).want(t, 200, `"report"`))
			if got.Format != c.format || !strings.Contains(string(got.View), c.view) || len(got.Report.Excluded) < c.gone || (c.gone > 0) != got.Report.Changed {
				t.Errorf("%s: %d excluded, %+v", got.View, len(got.Report.Excluded), got.Report)
			}
		})
	}
	var stored, answers int
	s.query(t, `SELECT (SELECT count(*) FROM compactor.message_log) + (SELECT count(*) FROM compactor.summary_calls WHERE answer IS NOT NULL), count(*)
		FROM compactor.summary_calls WHERE tenant = 'acme' AND state = 'forgotten' AND output_tokens > 0`, &stored, &answers)
	if stored != 0 || answers != model.Paid() || answers == 0 {
		t.Errorf("%d rows are stored; %d calls are recorded, %d were paid", stored, answers, model.Paid())
	}
}

func TestCompactRefuses(t *testing.T) {
	s := newServer(t)
	appends, read := s.key(t, "append", "acme"), s.key(t, "read", "acme")
	if _, err := s.st.Operator.ChangePolicies(t.Context(), []store.PolicyChange{policyOf(t, "other", "other")}, "test"); err != nil {
		t.Fatal(err)
	}
	s.do(t, read, http.MethodPost, "/v1/compact", object{"messages": orders(1)}).want(t, 403, `"forbidden"`)
	none := s.do(t, appends, http.MethodPost, "/v1/compact", object{"messages": orders(1), "policy": "none"}).want(t, 404, `"not_found"`)
	other := s.do(t, appends, http.MethodPost, "/v1/compact", object{"messages": orders(1), "policy": "other"}).want(t, 404, `"not_found"`)
	if strings.ReplaceAll(other.body, "other", "none") != none.body {
		t.Errorf("the policy of another tenant: %s\none that is not there: %s", other.body, none.body)
	}
	s.do(t, s.key(t, "append", "other"), http.MethodPost, "/v1/compact", object{"messages": orders(1), "policy": "other@1"}).want(t, 200)
	for name, c := range map[string]struct {
		body object
		want string
	}{
		"no messages":       {object{"messages": []object{}}, `"field":"body.messages"`},
		"null":              {object{"messages": nil}, `"field":"body.messages"`},
		"no list":           {object{"messages": 1}, `"field":"body.messages"`},
		"two sessions":      {object{"messages": []object{{"session_id": "a", "messages": orders(1)}, {"session_id": "b", "messages": orders(1)}}}, "one session"},
		"an unknown field":  {object{"messages": orders(1), "strategy": "x"}, `"field":"body.strategy"`},
		"unknown strategy":  {object{"messages": orders(1), "strategies": []string{"magic"}}, `"field":"body.pipeline"`},
		"parameter":         {object{"messages": orders(1), "pipeline": []object{{"strategy": "keep_last_n_messages", "params": object{"n": -1}}}}, `"field":"body.pipeline"`},
		"two ways":          {object{"messages": orders(1), "strategies": []string{"handoff"}, "policy": "default"}, "one of strategies"},
		"an unknown preset": {object{"messages": orders(1), "preset": "best"}, `"field":"body.preset"`},
		"a version":         {object{"messages": orders(1), "policy": "other@x"}, `"field":"body.policy"`},
		"an unknown pin":    {object{"messages": orders(1), "pin": []string{"x"}}, `"field":"body.pin"`},
		"an unknown format": {object{"messages": orders(1), "to": "word"}, `"field":"body.to"`},
	} {
		t.Run(name, func(t *testing.T) { s.do(t, appends, http.MethodPost, "/v1/compact", c.body).want(t, 422, c.want) })
	}
}

// policyOf returns the change that puts a policy for the sessions of a tenant in force.
func policyOf(t *testing.T, name, tenant string) store.PolicyChange {
	t.Helper()
	spec, err := policy.Spec(policy.Default())
	if err != nil {
		t.Fatal(err)
	}
	return store.PolicyChange{
		Name: name, Spec: spec, Hash: policy.SpecHash(spec), Match: map[string]string{"tenant": tenant},
		FleetHash: "x", Thresholds: []store.Threshold{{DueTokens: 1000}},
	}
}

const openResponses = "/v1/responses/compact"

// responseBody is the answer of /v1/responses/compact.
type responseBody struct {
	ID, Object string
	CreatedAt  int64 `json:"created_at"`
	Output     []struct {
		Type, ID, Status, Role string
		Content                []struct {
			Type, Text  string
			Annotations *[]any
		}
		Encrypted string `json:"encrypted_content"`
	}
	Usage struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Total  int64 `json:"total_tokens"`
	}
}

func TestResponsesAreCompactedIntoPlainMessages(t *testing.T) {
	s, model := scripted(t, llmtest.Step{Text: "<environment_context>\nNothing.\n</environment_context>", Times: 2})
	key := s.key(t, "append", "acme")
	input := append([]object{{"type": "message", "role": "system", "content": "Be brief."}}, orders(40)...)
	input = append(
		input, object{"type": "function_call", "call_id": "c1", "name": "look", "arguments": `{"id":1}`}, object{"type": "function_call_output", "call_id": "c1", "output": "shipped"},
		object{"role": "user", "content": []object{{"type": "input_text", "text": "Thanks."}}},
	)
	request := object{"model": "gpt-compactor", "input": input, "tools": []object{{"type": "x"}}, "text": object{"verbosity": "low"}, "instructions": "Be long."}
	first := s.do(t, key, http.MethodPost, openResponses, request).want(t, 200, `"cached_tokens":0`, `"reasoning_tokens":0`, "[Called the tool look with {\\\"id\\\":1}. Its result:]\\nshipped")
	got := into[responseBody](t, first)
	if got.Object != "response.compaction" || got.ID == "" || got.CreatedAt == 0 || len(got.Output) >= len(input) || got.Usage.Output >= got.Usage.Input || got.Usage.Total != got.Usage.Input+got.Usage.Output {
		t.Errorf("%+v", got)
	}
	ids := map[string]bool{}
	for _, item := range got.Output {
		if ids[item.ID] || item.ID == "" || item.Type != "message" || item.Status != "completed" || len(item.Content) == 0 {
			t.Errorf("%+v", item)
		}
		ids[item.ID] = true
		for _, part := range item.Content {
			if item.Role != "system" && strings.HasPrefix(strings.TrimSpace(part.Text), "<") || (part.Type == "output_text") != (part.Annotations != nil) || (part.Type == "output_text") != (item.Role == "assistant") {
				t.Errorf("%s: %+v", item.Role, part)
			}
		}
	}
	if got.Output[0].Role != "system" || strings.Contains(first.body, "Be long.") || !strings.Contains(first.body, "CONVERSATION SUMMARY") {
		t.Errorf("%s", first.body)
	}
	// Again: the answers, also those that were no summary, are paid for.
	paid := model.Paid()
	again := into[responseBody](t, s.do(t, key, http.MethodPost, openResponses, request).want(t, 200))
	if model.Paid() != paid || paid == 0 || again.ID != got.ID || again.Output[1].ID != got.Output[1].ID {
		t.Errorf("%d calls were paid for the first time, %d for both: %+v", paid, model.Paid(), again)
	}
	// Another tenant pays for itself.
	s.do(t, s.key(t, "append", "other"), http.MethodPost, openResponses, request).want(t, 200)
	if model.Paid() == paid {
		t.Error("another tenant got the answer")
	}
}

func TestCallsWithOneIDHaveTheirOwnResults(t *testing.T) {
	s := newServer(t)
	input := []object{{"role": "user", "content": "Look twice."}}
	for _, n := range []string{"1", "2"} {
		input = append(
			input, object{"type": "function_call", "call_id": "c", "name": "look" + n, "arguments": "{}"},
			object{"type": "function_call_output", "call_id": "c", "output": "seen " + n}, object{"role": "user", "content": "And then?"},
		)
	}
	s.do(t, s.key(t, "append", "acme"), http.MethodPost, openResponses, object{"model": "x", "input": input}).want(
		t, 200, "look1 with {}. Its result:]\\nseen 1", "look2 with {}. Its result:]\\nseen 2",
	)
}

func TestCompactionsWithoutASessionAreLimited(t *testing.T) {
	s := newServer(t, func(c *config.Config) { c.API.MaxCompactions = 1 })
	key := s.key(t, "append", "acme")
	body, send := io.Pipe()
	reads := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reads) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/compact", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Expect", "100-continue") // the server answers it when it reads the body
	first := make(chan int, 1)
	go func() { // whose body has not come yet
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			first <- 0
			return
		}
		first <- answer.StatusCode
		_ = answer.Body.Close()
	}()
	select {
	case <-reads:
	case status := <-first:
		t.Fatalf("status %d of the first", status)
	}
	full := s.do(t, key, http.MethodPost, "/v1/compact", object{"messages": orders(1)})
	if full.want(t, 503, `"code":"too_many_compactions"`, "api.max_compactions"); full.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	request := object{"model": "x", "input": "hi"}
	s.do(t, key, http.MethodPost, openResponses, request).want(t, 503, `"code":"too_many_compactions"`, `"type":"server_error"`)
	if err := json.NewEncoder(send).Encode(object{"messages": orders(1)}); err != nil {
		t.Fatal(err)
	}
	_ = send.Close()
	if status := <-first; status != http.StatusOK {
		t.Errorf("status %d of the first", status)
	}
	storetest.Await(t, "the first is done", func() bool { return s.do(t, key, http.MethodPost, openResponses, request).status == http.StatusOK })
}

func TestEqualInputAtOnceIsPaidForOnce(t *testing.T) {
	s, model := scripted(t, llmtest.Step{Behaviour: llmtest.Slow})
	key := s.key(t, "append", "acme")
	var bodies [4]string
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() {
			bodies[i] = s.do(t, key, http.MethodPost, openResponses, object{"model": "gpt-5.2", "input": orders(40)}).body
		})
	}
	wg.Wait()
	if model.Calls() != 1 {
		t.Errorf("%d calls", model.Calls())
	}
	for _, body := range bodies {
		if got := (reply{200, nil, body}); into[responseBody](t, got).Output[0].ID != into[responseBody](t, reply{200, nil, bodies[0]}).Output[0].ID {
			t.Errorf("%s\n%s", body, bodies[0])
		}
	}
}

func TestAnItemIsExpandedForItsTenant(t *testing.T) {
	s := newServer(t)
	key, other := s.key(t, "append", "acme"), s.key(t, "append", "other")
	_, ofItems, err := s.st.Admin.CreateKey(t.Context(), store.NewKey{Name: "items", Scope: "append", Tenant: "acme", Output: store.OutputItem}, "test")
	if err != nil {
		t.Fatal(err)
	}
	input := append(orders(2), object{"type": "function_call", "call_id": "c1", "name": "look", "arguments": `{"id":9007199254740993}`}, object{"type": "function_call_output", "call_id": "c1", "output": "shipped"})
	for name, headers := range map[string][]string{key: {"Compactor-Output", "item"}, ofItems: nil} {
		got := into[responseBody](t, s.do(t, name, http.MethodPost, openResponses, object{"model": "x", "input": input}, headers...).want(t, 200))
		if len(got.Output) != 1 || got.Output[0].Type != "compaction" || got.Output[0].ID == "" || strings.Contains(got.Output[0].Encrypted, "order") {
			t.Fatalf("%+v", got)
		}
		item := object{"type": "compaction", "encrypted_content": got.Output[0].Encrypted}
		next := object{"model": "x", "input": []object{item, {"role": "user", "content": "And now?"}}}
		back := s.do(t, key, http.MethodPost, openResponses, next).want(t, 200, "AB00000", "AB00001", "Called the tool look", "9007199254740993", "shipped", "And now?")
		if n := len(into[responseBody](t, back).Output); n != 5 { // a call is of the message before it
			t.Errorf("%d items: %s", n, back.body)
		}
		s.do(t, other, http.MethodPost, openResponses, next).want(t, 400, `"code":"invalid_encrypted_content"`, `"param":"input[0].encrypted_content"`)
		content := got.Output[0].Encrypted
		for _, changed := range []string{"", "gAAAAA", "cpt1.", content[:len(content)-2], content[:20] + "AA" + content[22:]} {
			item["encrypted_content"] = changed
			s.do(t, key, http.MethodPost, openResponses, next).want(t, 400, `"code":"invalid_encrypted_content"`)
		}
	}
	s.do(t, ofItems, http.MethodPost, openResponses, object{"model": "x", "input": "hi"}, "Compactor-Output", "messages").want(t, 200, `"input_text"`)
	s.do(t, ofItems, http.MethodPost, openResponses, object{"model": "x", "input": "hi"}, "Compactor-Output", "both").want(t, 400)
	image := object{"type": "input_image", "image_url": "data:image/png;base64,AA=="}
	s.do(t, key, http.MethodPost, openResponses, object{"model": "x", "input": []object{{"role": "user", "content": []object{image}}}}).want(t, 200, `"type":"input_image"`)
}

func TestResponsesRefuseAsOpenAI(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "acme")
	for name, c := range map[string]struct {
		body  any
		texts []string
	}{
		"no model":      {object{"input": "hi"}, []string{`"code":"missing_required_parameter"`, `"param":"model"`, `"type":"invalid_request_error"`}},
		"null model":    {object{"model": nil, "input": "hi"}, []string{`"code":"missing_required_parameter"`, `"param":"model"`}},
		"model number":  {object{"model": 1, "input": "hi"}, []string{`"param":"model"`}},
		"previous":      {object{"model": "gpt-5", "previous_response_id": "resp_1"}, []string{`compactionMode: \"input\"`, `"param":"previous_response_id"`}},
		"no JSON":       {"{", []string{`"code":"invalid_json"`, `"param":null`}},
		"input number":  {object{"model": "gpt-5", "input": 1}, []string{`"param":"input"`}},
		"unknown item":  {object{"model": "gpt-5", "input": []any{object{"type": "magic"}}}, []string{`"param":"input"`}},
		"no item":       {object{"model": "gpt-5", "input": []any{1}}, []string{`"param":"input"`}},
		"reference":     {object{"model": "gpt-5", "input": []any{object{"type": "item_reference", "id": "x"}}}, []string{`"param":"input[0]"`}},
		"a long string": {object{"model": "gpt-5", "input": strings.Repeat("ä", 10_485_761)}, []string{`"code":"string_above_max_length"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s.do(t, key, http.MethodPost, openResponses, c.body).want(t, 400, append(c.texts, `{"error":{`)...)
		})
	}
	s.do(t, s.key(t, "read", "acme"), http.MethodPost, openResponses, object{"model": "gpt-5"}).want(t, 403, `{"error":{`, `"permission_error"`)
	s.do(t, "cpk_no", http.MethodPost, openResponses, object{"model": "gpt-5"}).want(t, 401, `{"error":{`, `"authentication_error"`)
	for _, model := range []string{"gpt-5.2", "o3", "ft:gpt-4o:acme", "gpt-compactor", "claude-sonnet-4-5"} {
		s.do(t, key, http.MethodPost, openResponses, object{"model": model, "input": nil}).want(t, 200, `"output":[]`)
	}
}
