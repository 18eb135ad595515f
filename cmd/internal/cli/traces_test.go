package cli

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

// spanCollector takes spans by OTLP over HTTP.
type spanCollector struct {
	url string

	mu    sync.Mutex
	raw   bytes.Buffer // all that was sent
	spans []*tracepb.Span
}

func newCollector(t *testing.T) *spanCollector {
	t.Helper()
	c := &spanCollector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collectorpb.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("%s: %v", r.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		for _, resource := range sent.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// only returns the one span with a name.
func (c *spanCollector) only(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	var found []*tracepb.Span
	var names []string
	for _, s := range c.spans {
		names = append(names, s.GetName())
		if s.GetName() == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q among %q", len(found), name, names)
	}
	return found[0]
}

// wantSpan checks the kind, the parent and some attributes of a span, as text.
func wantSpan(t *testing.T, s, parent *tracepb.Span, kind tracepb.Span_SpanKind, want map[string]string) {
	t.Helper()
	if s.GetKind() != kind || !bytes.Equal(s.GetParentSpanId(), parent.GetSpanId()) || parent != nil && !bytes.Equal(s.GetTraceId(), parent.GetTraceId()) {
		t.Errorf("%s: kind %s below %x in trace %x, want %s below %s %x in %x", s.GetName(), s.GetKind(), s.GetParentSpanId(), s.GetTraceId(),
			kind, parent.GetName(), parent.GetSpanId(), parent.GetTraceId())
	}
	got := map[string]string{}
	for _, a := range s.GetAttributes() {
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			got[a.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			got[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		case *commonpb.AnyValue_BoolValue:
			got[a.GetKey()] = strconv.FormatBool(v.BoolValue)
		default:
			got[a.GetKey()] = a.GetValue().String()
		}
	}
	for key, value := range want {
		if v, ok := got[key]; !ok || value != "" && !strings.Contains(v, value) {
			t.Errorf("%s: %s is %q, want %q; all: %q", s.GetName(), key, v, value, got)
		}
	}
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("%s failed: %s", s.GetName(), s.GetStatus().GetMessage())
	}
}

// serveTo runs serve with the collector in OpenTelemetry's variable and returns the address of the API, and a
// function that stops it and returns its log.
func (p *plant) serveTo(collector, file string, environ ...string) (api string, stop func() []string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.t.Context()))
	logs, lines := logPipe(p.t)
	address, codes := make(chan string, 1), make(chan int, 1)
	var all []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for line := range lines {
			all = append(all, line)
			var l struct{ Msg, URL string }
			if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "serving the API" {
				address <- l.URL
			}
		}
		close(address)
	})
	environ = append(environ, "DATABASE_URL="+p.config.Database.URL.Reveal(), "REDIS_URL="+p.config.Redis.URL.Reveal(),
		"COMPACTOR_CONFIG="+file, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector)
	go func() {
		codes <- Main(ctx, []string{
			"serve", "--log-format=json", "--metrics-listen=off", "--api-listen=127.0.0.1:0", "--policy-debounce=0s", "--policy-min-gain-tokens=10",
		}, os.Stdout, logs, environ, builtin.Registry())
		_ = logs.Close()
	}()
	stop = sync.OnceValue(func() []string {
		cancel()
		if code := <-codes; code != 0 {
			p.t.Errorf("serve ended with %d", code)
		}
		reading.Wait()
		return all
	})
	p.t.Cleanup(func() { stop() })
	api, ok := <-address
	if !ok {
		p.t.Fatalf("serve did not start: %q", stop())
	}
	return api, stop
}

// append posts messages of a session with a trace context.
func (p *plant) append(api, session, traceparent string) {
	p.t.Helper()
	var messages []map[string]string
	for i := range 30 {
		messages = append(messages, map[string]string{"id": fmt.Sprint("m", i), "role": []string{"user", "assistant"}[i%2], "content": strings.Repeat("quokkas in zanzibar ", 20)})
	}
	raw, err := json.Marshal(messages)
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, api+"/v1/sessions/"+session+"/messages?model=gpt-4", bytes.NewReader(raw))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Traceparent", traceparent)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		p.t.Fatalf("append: %d %s, %v", response.StatusCode, body, err)
	}
}

const tracesConfig = `
policy:
  start_tokens: 1500
  target_tokens: 1000
  pipeline:
    - {strategy: handoff, params: {protect_last_n: 2, tail_token_budget: 200, max_summary_tokens: 400}}
llm:
  retry: {base: 1ms, max: 1ms}
  models: [{name: gpt-9, base_url: "%s", key_env: THE_KEY, window_tokens: 32000}]
`

func TestATraceLeadsFromTheAppendToTheModel(t *testing.T) {
	t.Parallel()
	model := llmtest.New(llmtest.Step{Behaviour: llmtest.Overloaded, Times: 1})
	url, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	p, c := newPlant(t), newCollector(t)
	api, stop := p.serveTo(c.url, file(t, "c.yaml", fmt.Sprintf(tracesConfig, url)), "THE_KEY=hush-hush-hush-42")
	const trace, client = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	p.append(api, "chat", "00-"+trace+"-"+client+"-01")
	p.await("the run has ended", func() bool { return p.session("chat").Revision == 1 })
	log := strings.Join(stop(), "\n")

	posted := c.only(t, "POST /v1/sessions/{session}/messages")
	traceID, _ := hex.DecodeString(trace)
	clientID, _ := hex.DecodeString(client)
	wantSpan(t, posted, &tracepb.Span{Name: "client", SpanId: clientID, TraceId: traceID}, tracepb.Span_SPAN_KIND_SERVER, map[string]string{
		"http.request.method": "POST", "http.route": "/v1/sessions/{session}/messages", "http.response.status_code": "200", "gen_ai.conversation.id": "chat",
	})
	enqueue, run := c.only(t, "enqueue event"), c.only(t, "run event")
	wantSpan(t, enqueue, nil, tracepb.Span_SPAN_KIND_PRODUCER, map[string]string{
		"messaging.system": "asynq", "messaging.destination.name": ":default", "messaging.message.id": "run:", "compactor.runs": "",
	})
	wantSpan(t, run, enqueue, tracepb.Span_SPAN_KIND_CONSUMER, map[string]string{
		"gen_ai.operation.name": "compact", "gen_ai.conversation.id": "chat", "gen_ai.conversation.compacted": "true", "gen_ai.compaction.trigger": "event",
		"compactor.tenant": "default", "compactor.run": "", "compactor.result": "applied", "compactor.outcome": "applied", "compactor.policy": "default",
		"compactor.tokens.before": "", "compactor.tokens.after": "", "compactor.messages.before": "30", "compactor.messages.after": "",
	})
	if bytes.Equal(enqueue.GetTraceId(), traceID) {
		t.Error("the run is in the trace of the append, which is one of many")
	}
	if l := run.GetLinks(); len(l) != 1 || !bytes.Equal(l[0].GetTraceId(), traceID) || !bytes.Equal(l[0].GetSpanId(), posted.GetSpanId()) {
		t.Errorf("links %v, want one to the append", l)
	}
	step := c.only(t, "plan handoff")
	wantSpan(t, step, run, tracepb.Span_SPAN_KIND_INTERNAL, map[string]string{"compactor.strategy": "handoff", "compactor.changed": "true"})
	wantSpan(t, c.only(t, "apply"), run, tracepb.Span_SPAN_KIND_INTERNAL, nil)
	wantSpan(t, c.only(t, "chat gpt-9"), step, tracepb.Span_SPAN_KIND_CLIENT, map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-9", "gen_ai.response.model": "gpt-9",
		"gen_ai.usage.input_tokens": "", "gen_ai.usage.output_tokens": "", "gen_ai.response.finish_reasons": "", "server.address": "127.0.0.1", "server.port": "",
		"compactor.requests": "2",
	})
	if id := fmt.Sprintf(`"trace_id":"%x"`, run.GetTraceId()); !strings.Contains(log, id) {
		t.Errorf("the log lacks %s:\n%s", id, log)
	}
	sent := c.raw.String()
	for _, secret := range []string{"zanzibar", "quokka", "SUMMARY", "hush", "postgres://", "redis://", p.config.Database.URL.Reveal(), model.Requests()[0].System[:20]} {
		if strings.Contains(sent, secret) {
			t.Errorf("%q was sent to the collector", secret)
		}
	}
	if !strings.Contains(sent, "compactor") || len(c.spans) != 6 {
		t.Errorf("%d spans in %d bytes", len(c.spans), len(sent))
	}
}

func TestDoctorShowsWhereSpansGo(t *testing.T) {
	t.Parallel()
	env := database(t)
	invoke(t, env, "doctor").want(t, 0, "✓ collector: none: no spans are made")
	c := newCollector(t)
	invoke(t, append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url), "doctor").want(t, 0, "✓ collector: "+c.url+"/v1/traces")
	invoke(t, append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url), "config", "print").want(t, 0, "traces.endpoint", "env OTEL_EXPORTER_OTLP_ENDPOINT", c.url+"/v1/traces")
	invoke(t, append(env, "COMPACTOR_TRACES_ENDPOINT=http://127.0.0.1:9"), "doctor").want(t, 0, "! collector: http://127.0.0.1:9/v1/traces: ", "refused", "4318")
	invoke(t, append(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://u:hush@c"), "doctor").want(t, 0, "! collector: OTEL_EXPORTER_OTLP_ENDPOINT is not used: want a URL without credentials")
}

func TestNothingWaitsForACollector(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hanging }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hanging) })
	p := newPlant(t)
	api, stop := p.serveTo(server.URL, file(t, "c.yaml", "policy: {start_tokens: 1500, target_tokens: 1000}\n"))
	p.append(api, "chat", "")
	p.await("the run has ended", func() bool { return p.session("chat").Revision == 1 })
	if log := strings.Join(stop(), "\n"); !strings.Contains(log, "the last spans were not sent") || !strings.Contains(log, `"stopped","ok":true`) {
		t.Error(log)
	}
}
