package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// answerLimit and failureLimit bound how much of a body is read. The longest
	// answers have some 128,000 tokens, with their reasoning.
	answerLimit  = 8 << 20
	failureLimit = 64 << 10
	// retryAfterMax is more than any server means.
	retryAfterMax = 24 * time.Hour
)

// request is the body of a chat completion, with the fields that this package sets.
type request struct {
	Model     string    `json:"model"`
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens,omitempty"`

	MaxCompletionTokens int     `json:"max_completion_tokens,omitempty"`
	Temperature         float32 `json:"temperature,omitempty"`
	Stream              bool    `json:"stream"`
	ReasoningEffort     string  `json:"reasoning_effort,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// body returns the JSON of a request for an answer of at most limit tokens; 0 leaves
// that open.
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
		r.Temperature = math.SmallestNonzeroFloat32 // some servers refuse 0 and take what is just above it
	}
	out, err := json.Marshal(r)
	if err != nil {
		panic("llm: request: " + err.Error()) // strings and finite numbers always marshal
	}
	return out
}

// response is what came back for one request.
type response struct {
	status     int           // 0 where none came
	retryAfter time.Duration // 0 where the server named none
	requestID  string        // of the server, for its support; harmless, see plainID
	body       []byte
	complete   bool  // body is all of it
	err        error // of the transport, or of reading the body; never shown
}

// send makes one request to a model and reads no more of the body than an answer can
// have.
func (c *Client) send(ctx context.Context, m *model, key Secret, body []byte) (r response) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(m.BaseURL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "compactor")
	if key := key.Reveal(); key != "" {
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

// retryAfter reads how long a server wants to be left alone: milliseconds where it
// gives them, seconds, or a date.
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

// plainID returns the id that the server gave the request, if it looks like nothing but
// an id: what a server writes into a header may be anything, and this is logged.
func plainID(h http.Header) string {
	id := h.Get("X-Request-Id")
	if id == "" {
		id = h.Get("Request-Id")
	}
	if !regexp.MustCompile(`^(req_)?[0-9a-f][0-9a-f-]{7,63}$`).MatchString(id) {
		return ""
	}
	return id
}

// newTransport reaches servers with a bound on every step. The answer's header
// comes when the answer is written, so it may take as long as an attempt may.
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

// newHTTPClient follows no redirect: it would carry the prompt to a server that was not
// configured.
func newHTTPClient(base http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     base,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
