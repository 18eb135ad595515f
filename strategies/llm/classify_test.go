package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// canned is a transport that answers every request in the same way.
type canned struct {
	status int
	body   string
	err    error // in place of an answer
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body))}, c.err
}

// whole returns the response to a request that is answered with a body.
func whole(status int, body string) response {
	c := &Client{transport: canned{status: status, body: body}}
	return c.send(context.Background(), &model{Profile: Profile{Name: "m", BaseURL: "http://a/v1"}}, "", Call{User: "u"}, 0)
}

// The error formats of servers.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   Class
	}{
		"OpenAI: context":              {400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, ContextTooLong},
		"OpenAI: quota":                {429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, QuotaExhausted},
		"OpenAI: rate":                 {429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, RateLimited},
		"OpenAI: larger than a minute": {429, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.","type":"tokens","code":"rate_limit_exceeded"}}`, ContextTooLong},
		"OpenAI: billing":              {400, `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","code":"billing_hard_limit_reached"}}`, QuotaExhausted},
		"OpenAI: no such model":        {404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`, ModelNotFound},
		"OpenAI: not for chat":         {404, `{"error":{"message":"This is not a chat model and thus not supported","type":"invalid_request_error","param":"model","code":null}}`, ModelNotFound},
		"OpenAI: wrong address":        {404, `{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)","type":"invalid_request_error","param":null,"code":null}}`, BadRequest},
		"vLLM: no such model":          {404, `{"object":"error","message":"The model 'x' does not exist.","type":"NotFoundError","param":null,"code":404}`, ModelNotFound},
		"vLLM: wrong address":          {404, `{"detail":"Not Found"}`, BadRequest},
		"Ollama: no such model, newer": {404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error","param":null,"code":null}}`, ModelNotFound},
		"OpenRouter: no such model":    {400, `{"error":{"message":"x/y is not a valid model ID","code":400},"user_id":"u"}`, ModelNotFound},
		"OpenRouter: nobody serves it": {404, `{"error":{"message":"No endpoints found for some-model.","code":404}}`, ModelNotFound},
		"Azure: no such deployment":    {404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, ModelNotFound},
		"Azure: wrong address":         {404, `{"error":{"code":"404","message":"Resource not found"}}`, BadRequest},
		"Anthropic: no such model":     {404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, ModelNotFound},
		"Mistral: no such model":       {400, `{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}`, ModelNotFound},
		"Gemini: no such model":        {404, `[{"error":{"code":404,"message":"models/x is not found for API version v1main","status":"NOT_FOUND"}}]`, ModelNotFound},
		"DeepSeek: no such model":      {400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, ModelNotFound},
		"LiteLLM: no such model":       {400, `{"error":{"message":"/chat/completions: Invalid model name passed in model=x","type":null,"param":null,"code":"400"}}`, ModelNotFound},
		"Cloudflare: no such model":    {400, `{"success":false,"errors":[{"message":"No such model x or task","code":5007}]}`, ModelNotFound},
		"nginx: wrong address":         {404, `<html><title>404 models</title></html>`, BadRequest},
		"Mistral: field":               {422, `{"object":"error","message":{"detail":[{"type":"greater_than","loc":["body","max_tokens"],"msg":"Input should be greater than 0","input":0}]}}`, BadRequest},
		"a text alone":                 {404, `no model of that name`, ModelNotFound},
		"OpenAI: region":               {403, `{"error":{"message":"Country not supported","type":"request_forbidden","code":"unsupported_country_region_territory"}}`, Auth},
		"Azure: filter":                {400, `{"error":{"message":"filtered","type":null,"code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{}}}}`, ContentFilter},
		"Azure: the inner code":        {400, `{"error":{"message":"filtered","code":"BadRequest","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, ContentFilter},
		"vLLM: context":                {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","param":null,"code":400}`, ContextTooLong},
		"vLLM: prompt":                 {400, `{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}`, ContextTooLong},
		"Ollama: text":                 {400, `{"error":"the input length exceeds the context length"}`, ContextTooLong},
		"Ollama: no such model":        {404, `{"error":"model 'x' not found"}`, ModelNotFound},
		"llama.cpp: context":           {400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, ContextTooLong},
		"llama.cpp: older":             {500, `{"error":{"code":500,"message":"the request exceeds the available context size","type":"server_error"}}`, ContextTooLong},
		"llama.cpp: loading":           {503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, Overloaded},
		"Anthropic: long":              {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, ContextTooLong},
		"Anthropic: large":             {413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, ContextTooLong},
		"Anthropic: overloaded":        {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Overloaded},
		"Anthropic: credit":            {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, QuotaExhausted},
		"Anthropic: key":               {401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, Auth},
		"Gemini: rate, in a list":      {429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan","status":"RESOURCE_EXHAUSTED"}}]`, RateLimited},
		"Gemini: key":                  {400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, Auth},
		"Gemini: context":              {400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, ContextTooLong},
		"DeepSeek: balance":            {402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`, QuotaExhausted},
		"Groq: 413 called rate":        {413, `{"error":{"message":"Request too large for model on tokens per minute","type":"tokens","code":"rate_limit_exceeded"}}`, ContextTooLong},
		"one-api: quota":               {403, `{"error":{"message":"quota","type":"new_api_error","code":"insufficient_user_quota"}}`, QuotaExhausted},
		"FastAPI: detail":              {422, `{"detail":[{"msg":"field required","input":"what is a context window"}]}`, BadRequest},
		"FastAPI: text":                {401, `{"detail":"Unauthorized"}`, Auth},
		"nginx: HTML":                  {413, `<html><h1>413 Request Entity Too Large</h1></html>`, ContextTooLong},
		"nginx: gateway":               {502, `<html>`, Overloaded},
		"nginx: gateway timeout":       {504, `<html>`, Timeout},
		"Cloudflare: timeout":          {524, ``, Timeout},
		"proxy":                        {407, ``, Auth},
		"a redirect":                   {307, ``, BadRequest},
		"nothing":                      {500, ``, Overloaded},
		"not implemented":              {501, ``, BadRequest},
		"conflict":                     {409, ``, Overloaded},
		"a teapot":                     {418, `null`, BadRequest},
		"odd types":                    {400, `{"error":{"message":["maximum context length is 5"],"innererror":7,"code":{},"type":[]}}`, ContextTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := classify(whole(c.status, c.body), "some-model"); got.class != c.want || got.status != c.status {
				t.Errorf("got %+v, want %s", got, c.want)
			}
		})
	}
}

func TestAnswerBodies(t *testing.T) {
	t.Parallel()
	said := func(text, finish string, u Usage) classification {
		return classification{status: 200, text: text, finish: finish, usage: u}
	}
	failed := func(c Class, u Usage) classification { return classification{status: 200, class: c, usage: u} }
	silent := Usage{Estimated: 1}
	for name, c := range map[string]struct {
		body string
		want classification
	}{
		"no details of usage":          {`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, said("a", FinishStop, Usage{Input: 3, Output: 2})},
		"details are null":             {`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":null}}`, said("a", "", Usage{Input: 3, Output: 2})},
		"usage is null":                {`{"choices":[{"message":{"content":"a"},"finish_reason":null}],"usage":null}`, said("a", "", silent)},
		"usage is text":                {`{"choices":[{"message":{"content":"a"}}],"usage":"a lot"}`, said("a", "", silent)},
		"odd numbers":                  {`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":3.0,"completion_tokens":-5,"prompt_tokens_details":{"cached_tokens":1e300}}}`, said("a", "", Usage{Input: 3, Cached: 3})},
		"DeepSeek's cache":             {`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":30,"completion_tokens":2,"prompt_cache_hit_tokens":20}}`, said("a", "", Usage{Input: 30, Cached: 20, Output: 2})},
		"reasoning within the output":  {`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":9,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":7}}}`, said("a", "", Usage{Input: 3, Output: 9, Reasoning: 7})},
		"reasoning beside the output":  {`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":7}}}`, said("a", "", Usage{Input: 3, Output: 9, Reasoning: 7})},
		"fields of other types":        {`{"created":1.7e9,"id":5,"choices":[{"index":"0","message":{"content":"a","tool_calls":"none"},"finish_reason":"end_turn"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, said("a", FinishStop, Usage{Input: 3, Output: 2})},
		"content in parts":             {`{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, said("ab", "", silent)},
		"cut off, in Anthropic's word": {`{"choices":[{"message":{"content":"a"},"finish_reason":"max_tokens"}]}`, said("a", FinishLength, silent)},
		"an unknown finish reason":     {`{"choices":[{"message":{"content":"a"},"finish_reason":"canary"}]}`, said("a", FinishOther, silent)},
		"reasoning beside content":     {`{"choices":[{"message":{"content":"a","reasoning_content":"b"}}]}`, said("a", "", silent)},
		"reasoning within content":     {`{"choices":[{"message":{"content":"\n<think>b</think>\n\na"}}]}`, said("a", "", silent)},
		"tools with words":             {`{"choices":[{"message":{"content":"a","tool_calls":[{}]},"finish_reason":"tool_calls"}]}`, said("a", FinishTools, silent)},

		"reasoning alone":            {`{"choices":[{"message":{"content":null,"reasoning_content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, failed(MalformedAnswer, Usage{Input: 3, Output: 2})},
		"content of white space":     {`{"choices":[{"message":{"content":" \n\t"}}]}`, failed(MalformedAnswer, silent)},
		"tools alone":                {`{"choices":[{"message":{"content":null,"tool_calls":[{}]},"finish_reason":"tool_calls"}]}`, failed(MalformedAnswer, silent)},
		"no message":                 {`{"choices":[{}]}`, failed(MalformedAnswer, silent)},
		"choices are null":           {`{"choices":null}`, failed(MalformedAnswer, silent)},
		"null":                       {`null`, failed(MalformedAnswer, silent)},
		"nothing":                    {``, failed(MalformedAnswer, silent)},
		"HTML":                       {`<html>Sign in to the guest network</html>`, failed(MalformedAnswer, silent)},
		"an error":                   {`{"error":{"message":"Internal error","type":"server_error"}}`, failed(MalformedAnswer, silent)},
		"an error that has a name":   {`{"error":{"message":"x","code":"context_length_exceeded"}}`, failed(ContextTooLong, silent)},
		"an error within the answer": {`{"choices":[{"message":{"content":"half an"},"finish_reason":"error"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, failed(MalformedAnswer, Usage{Input: 3, Output: 2})},
		"Gemini's filter":            {`{"choices":[{"message":{"content":"half"},"finish_reason":"SAFETY"}]}`, failed(ContentFilter, silent)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, withoutServer(classify(whole(200, c.body), "m")), cmp.AllowUnexported(classification{}, ServerError{})); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
	starved := classify(whole(200, `{"choices":[{"message":{"content":"<think>on and on"},"finish_reason":"length"}]}`), "m")
	if !starved.exhausted || starved.class != MalformedAnswer {
		t.Errorf("got %+v", starved)
	}
}

// withoutServer returns a classification without what the server said.
func withoutServer(c classification) classification {
	c.server = ServerError{}
	return c
}

func TestConnectionsThatFail(t *testing.T) {
	t.Parallel()
	slow := &net.OpError{Op: "read", Err: context.DeadlineExceeded}
	for name, c := range map[string]struct {
		x         response
		want      Class
		estimated int
	}{
		"no server listens":         {response{sent: true, unconnected: true, err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, Unavailable, 0},
		"the server is not reached": {response{sent: true, unconnected: true, err: &net.OpError{Op: "dial", Err: context.DeadlineExceeded}}, Unavailable, 0},
		"the connection is reset":   {response{sent: true, err: errors.New("reset")}, Unavailable, 1},
		"no answer":                 {response{sent: true, err: fmt.Errorf("wrapped: %w", context.DeadlineExceeded)}, Timeout, 1},
		"half an answer in time":    {response{sent: true, status: 200, err: slow}, Timeout, 1},
		"half an answer":            {response{sent: true, status: 200, err: errors.New("reset")}, MalformedAnswer, 1},
		"half an error":             {response{sent: true, status: 500, err: errors.New("reset")}, Overloaded, 0},
	} {
		if v := classify(c.x, "m"); v.class != c.want || v.usage.Estimated != c.estimated {
			t.Errorf("%s: %+v, want %s and %d", name, v, c.want, c.estimated)
		}
	}
}

func TestStretchesOfThePromptAreNotShown(t *testing.T) {
	t.Parallel()
	long := make([]byte, 0, 4<<20)
	for n := uint32(0); len(long) < cap(long)-20; n++ {
		long = fmt.Appendf(long, "%08x", n*2654435761)
	}
	for _, c := range []struct{ message, prompt, want string }{
		{"no: abcdefghijklmnop", "abcdefghijklmnop", "no: [...]"},
		{"no: abcdefghijklmno", "abcdefghijklmno", "no: abcdefghijklmno"}, // too short
		{"no: abcdefghijklmnopqrstuvwx!", "abcdefghijklmnopqrs, efghijklmnopqrstuvwx", "no: [...]!"},
		{"ü: „äöüäöüäöüäöü“ö", "äöüäöüäöüäöü", "ü: „[...]“ö"},
		{string(long[1<<20:][:2000]) + strings.Repeat("-", 2000), string(long), "[...]" + strings.Repeat("-", 2000)},
	} {
		if got := without(c.message, c.prompt); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestATransportErrorIsShownWithoutURLs(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"dial tcp 127.0.0.1:9: connection refused": &url.Error{Op: "Post", URL: "https://user:pass@host/v1?key=k", Err: errors.New("dial tcp 127.0.0.1:9: connection refused")},
		"invalid proxy address [URL] parse failed": errors.New(`invalid proxy address "http://user:pass@proxy:1?key=k": parse failed`),
	} {
		if v := classify(response{sent: true, err: err}, "m"); v.server.shown("").Message != want {
			t.Errorf("%q, want %q", v.server.shown("").Message, want)
		}
	}
}

func TestRulesAreComplete(t *testing.T) {
	t.Parallel()
	classes := []Class{RateLimited, QuotaExhausted, Overloaded, Timeout, ContextTooLong, ContentFilter, Auth, ModelNotFound, BadRequest, MalformedAnswer, Unavailable, OverBudget, Canceled}
	for _, c := range classes {
		r, ok := rules[c]
		if !ok || r.rank == 0 {
			t.Errorf("%s has no rule", c)
		}
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(string(c)) {
			t.Errorf("%s is no code", c)
		}
	}
	if len(rules) != len(classes) {
		t.Errorf("%d rules, %d classes", len(rules), len(classes))
	}
}

func TestPriceIsRoundedUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    Price
		u    Usage
		want int64
	}{
		{Price{}, Usage{Input: 5, Output: 5}, 0},
		{Price{Input: 0.15, Output: 0.6}, Usage{Input: 1000, Output: 1000}, 750},
		{Price{Input: 0.15, Output: 0.6}, Usage{Input: 1}, 1},
		{Price{Input: 2.5, Cached: 1.25, Output: 10}, Usage{Input: 1000, Cached: 400, Output: 100, Reasoning: 90}, 1500 + 500 + 1000},
		{Price{Input: 2.5, Output: 10}, Usage{Input: 1000, Cached: 400}, 2500}, // no price for what is cached
	} {
		if got := c.p.micros(c.u); got != c.want {
			t.Errorf("%+v of %+v: %d, want %d", c.u, c.p, got, c.want)
		}
	}
}

// FuzzClassify: whatever a server answers, it is classified without a panic, and nothing of
// its words gets into an error.
func FuzzClassify(f *testing.F) {
	for _, body := range []string{
		`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`,
		`{"error":{"message":"maximum context length","type":"x","code":"context_length_exceeded"}}`, `[{"error":"x"}]`, `{"error":null}`,
		`{"object":"error","message":"m","code":400}`, `<html>502</html>`, `{"detail":[{"msg":1}]}`, `{"choices":[{"message":{"content":[{"text":"<think>"}]}}]}`, ``,
	} {
		for _, status := range []int{0, 200, 307, 400, 401, 413, 429, 500, 529} {
			f.Add(status, []byte(body), "7", true)
		}
	}
	f.Fuzz(func(t *testing.T, status int, body []byte, after string, complete bool) {
		x := whole(status, string(body))
		x.retryAfter = retryAfter(http.Header{"Retry-After": {after}}, time.Now())
		x.complete = complete
		v := classify(x, "m")
		if v.retryAfter < 0 || v.retryAfter > retryAfterMax {
			t.Errorf("retry after %s", v.retryAfter)
		}
		u := v.usage
		if min(u.Input, u.Cached, u.Output, u.Reasoning, u.Estimated) < 0 || u.Cached > u.Input || u.Reasoning > u.Output || u.Estimated > 1 || max(u.Input, u.Output) > 2*maxTokens {
			t.Errorf("usage %+v", u)
		}
		finishes := []string{"", FinishStop, FinishLength, FinishTools, FinishOther}
		if v.class == "" {
			if !isSuccess(status) || !complete || strings.TrimSpace(v.text+v.refusal) == "" || !slices.Contains(finishes, v.finish) {
				t.Errorf("an answer: %+v", v)
			}
			return
		}
		if _, ok := rules[v.class]; !ok || v.text+v.refusal+v.finish != "" {
			t.Errorf("a failure: %+v", v)
		}
		e := Error{Class: v.class, Model: "m", Status: v.status, RetryAfter: v.retryAfter, Usage: u}
		if !regexp.MustCompile(`^model m: [a-z_]+ \((status -?\d+, )?0 attempts(, again in [0-9.a-zµ]+)?\)$`).MatchString(e.Error()) {
			t.Errorf("error %s", e.Error())
		}
	})
}
