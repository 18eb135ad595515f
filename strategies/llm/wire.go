package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
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

// exchange is one request and what came back, as the wire saw it: the library in
// between drops headers, and hides bodies or prints them whole.
type exchange struct {
	key Secret

	sent       bool          // the request reached the transport
	status     int           // 0 without a response
	retryAfter time.Duration // 0 where the server named none
	requestID  string        // of the server, for its support; harmless, see plainID
	body       []byte
	whole      bool  // body is all of it
	err        error // of the transport, or of reading the body; never shown
}

type exchangeKey struct{}

// wire is the RoundTripper below the library. It adds the key, fills the context's
// exchange, and reads no more of a body than an answer can have.
type wire struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("a request outside of a call")
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "compactor")
	if key := x.key.Reveal(); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	x.sent = true
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		x.err = err
		return nil, err
	}
	x.status = resp.StatusCode
	x.retryAfter = retryAfter(resp.Header, time.Now())
	x.requestID = plainID(resp.Header)
	limit := int64(failureLimit)
	if isSuccess(resp.StatusCode) {
		limit = answerLimit
	}
	x.body, x.err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	_ = resp.Body.Close()
	x.whole = x.err == nil && int64(len(x.body)) <= limit
	resp.Body = io.NopCloser(bytes.NewReader(x.body))
	return resp, nil
}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
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

// plainID is the id that the server gave the request, if it looks like nothing but
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

// newHTTPClient follows no redirect: it would carry the prompt to a place that
// nobody configured.
func newHTTPClient(base http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     wire{base},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
