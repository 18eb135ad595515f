package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// answerLimit and failureLimit bound the body of a response, in bytes. The longest
	// answers have about 128,000 tokens, with their reasoning.
	answerLimit  = 8 << 20
	failureLimit = 64 << 10
	// retryAfterMax bounds Retry-After.
	retryAfterMax = 24 * time.Hour
)

// request is the body of a request for a chat completion.
type request struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens,omitempty"`

	MaxCompletionTokens int     `json:"max_completion_tokens,omitempty"`
	Temperature         float32 `json:"temperature,omitempty"`
	Stream              bool    `json:"stream"`
	ReasoningEffort     string  `json:"reasoning_effort,omitempty"`

	CacheOptions *cacheOptions `json:"prompt_cache_options,omitempty"`
}

// cacheOptions are those of the server's prompt cache. In the mode explicit it writes nothing,
// as requests mark nothing.
type cacheOptions struct {
	Mode string `json:"mode"`
}

// cacheWritesCost reports whether the server writes prompts to its cache, for a price, unless it
// is told not to: OpenAI does so from GPT-5.6 on. No later request begins with the prompt of a
// summary. Other servers may refuse the option, and some of them write only what is marked.
func (p Profile) cacheWritesCost() bool {
	u, err := url.Parse(p.BaseURL)
	openAI := err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com"))
	return openAI && (strings.HasPrefix(p.Name, "gpt-5.6") || strings.HasPrefix(p.Name, "gpt-6"))
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// body returns the JSON of a request with an output limit in tokens, 0 for none.
func (p Profile) body(system, user string, limit int) []byte {
	r := request{Model: p.Name, ReasoningEffort: p.ReasoningEffort}
	if system != "" {
		r.Messages = append(r.Messages, message{"system", system})
	}
	r.Messages = append(r.Messages, message{"user", user})
	if p.MaxTokensField == MaxTokens {
		r.MaxTokens = limit
	} else {
		r.MaxCompletionTokens = limit
	}
	if !p.FixedTemperature {
		r.Temperature = math.SmallestNonzeroFloat32 // some servers reject 0
	}
	if p.cacheWritesCost() {
		r.CacheOptions = &cacheOptions{Mode: "explicit"}
	}
	out, err := json.Marshal(r)
	if err != nil {
		panic("llm: request: " + err.Error()) // strings and finite numbers always marshal
	}
	return out
}

// response is the response to one request.
type response struct {
	status     int           // 0 without a response
	retryAfter time.Duration // 0 if the server sent none
	requestID  string        // assigned by the server, see plainID
	body       []byte
	complete   bool  // whether body is complete
	err        error // of the transport, or of reading the body; never shown
}

// send makes one request to a model and reads at most answerLimit of the body.
func (c *Client) send(ctx context.Context, m *model, key string, body []byte) (r response) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(m.BaseURL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "compactor")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return response{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	r.status = resp.StatusCode
	r.retryAfter = retryAfter(resp.Header, time.Now())
	r.requestID = plainID(resp.Header)
	limit := int64(failureLimit)
	if isSuccess(resp.StatusCode) {
		limit = answerLimit
	}
	r.body, r.err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	r.complete = r.err == nil && int64(len(r.body)) <= limit
	return r
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
