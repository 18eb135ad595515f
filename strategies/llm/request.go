package llm

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// retryAfterMax bounds Retry-After.
const retryAfterMax = 24 * time.Hour

// cacheWritesCost reports whether the server writes prompts to its cache, for a price, unless it
// is asked not to: OpenAI does so from GPT-5.6 on. No later request begins with the prompt of a
// summary. Other servers may refuse the option, and some of them write only marked prompts.
func (p Profile) cacheWritesCost() bool {
	u, err := url.Parse(p.BaseURL)
	openAI := err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com"))
	return openAI && (strings.HasPrefix(p.Name, "gpt-5.6") || strings.HasPrefix(p.Name, "gpt-6"))
}

// request returns a request with an output limit in tokens, 0 for none, and the fields that
// the library's type lacks.
func (p Profile) request(system, user string, limit int) (r openai.ChatCompletionRequest, extra map[string]any) {
	r.Model, r.ReasoningEffort, extra = p.Name, p.ReasoningEffort, map[string]any{}
	if system != "" {
		r.Messages = append(r.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: system})
	}
	r.Messages = append(r.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: user})
	if p.MaxTokensField == MaxTokens {
		r.MaxTokens = limit //nolint:staticcheck // servers without the newer field need it
	} else {
		r.MaxCompletionTokens = limit
	}
	if !p.FixedTemperature {
		extra["temperature"] = 0 // which the library leaves out, so that servers take 1
	}
	if p.cacheWritesCost() {
		// In the mode explicit the cache writes nothing, as requests mark nothing.
		extra["prompt_cache_options"] = map[string]string{"mode": "explicit"}
	}
	return r, extra
}

// response is the response to one request.
type response struct {
	sent        bool          // whether the request was handed to the transport
	unconnected bool          // whether the transport had no connection for it
	status      int           // 0 without a response
	retryAfter  time.Duration // 0 if the server sent none
	requestID   string        // assigned by the server, see plainID
	usage       Usage         // that the server reported
	complete    bool          // whether the body was read to its end
	answer      openai.ChatCompletionResponse
	err         error // of the transport or of reading the body, or an *openai.APIError
}

// send makes one request to a model and reads at most answerLimit of the body.
func (c *Client) send(ctx context.Context, m *model, key string, call Call, limit int) response {
	request, extra := m.request(call.System, call.User, limit)
	x := &exchange{base: c.transport, extra: extra}
	api := openai.DefaultConfig(key)
	api.BaseURL, api.HTTPClient = m.BaseURL, &http.Client{Transport: x}
	x.answer, x.err = openai.NewClientWithConfig(api).CreateChatCompletion(ctx, request)
	return x.response
}

func isSuccess(status int) bool { return status >= 200 && status < 300 }

// retryAfter reads the delay that a server requests, in milliseconds, in seconds or as a
// date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	number := func(s string, unit time.Duration) (time.Duration, bool) {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || v != v {
			return 0, false
		}
		v *= float64(unit)
		return time.Duration(min(max(v, 0), float64(retryAfterMax))), true
	}
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := number(value, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), retryAfterMax)
	}
	return 0
}

// plainID returns the server's id of the request if it has the form of an id. It is logged,
// and other forms might hold content.
func plainID(h http.Header) string {
	id := cmp.Or(h.Get("X-Request-Id"), h.Get("Request-Id"))
	if !regexp.MustCompile(`^(req_)?[0-9a-f][0-9a-f-]{7,63}$`).MatchString(id) {
		return ""
	}
	return id
}

// newTransport returns a transport with a timeout for each step. Servers send the header
// of an answer when the answer is complete, so its timeout is that of an attempt.
func newTransport(d Deadline) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: d.Connect, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    d.Connect,
		ResponseHeaderTimeout:  d.Max,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: failureLimit,
		ForceAttemptHTTP2:      true,
	}
}
