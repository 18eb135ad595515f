package llm

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// classification is the interpretation of a response: an answer if class is empty, else
// a failure.
type classification struct {
	class      Class
	status     int
	retryAfter time.Duration
	requestID  string

	text, refusal, finish string
	// usage is the usage that the server reported, also with a failure.
	usage Usage
	// exhausted reports whether the output limit was used up before any text.
	exhausted bool
}

// classify interprets a response. Nothing else parses the texts of servers; only a class,
// numbers and the text of an answer are taken from them.
func classify(r response) classification {
	c := classification{status: r.status, retryAfter: r.retryAfter, requestID: r.requestID}
	switch {
	case r.status == 0:
		c.class = transportClass(r.err)
	case isSuccess(r.status) && r.err != nil && isTimeout(r.err):
		c.class = Timeout
	case isSuccess(r.status) && !r.complete:
		c.class = MalformedAnswer // truncated, or larger than any answer
	case isSuccess(r.status):
		c.readAnswer(r.body)
	default:
		c.class = statusClass(r.status, readServerError(r.body))
		c.usage = readUsage(r.body)
	}
	if mayBeBilled(r, c) {
		c.usage.Unreported = 1
	}
	return c
}

// mayBeBilled reports whether a server may have billed the request without reporting
// usage.
func mayBeBilled(r response, c classification) bool {
	reported := c.usage.Input > 0 || c.usage.Output > 0
	return !reported && (isSuccess(r.status) || r.status == 0 && !isDial(r.err))
}

// transportClass returns the class of a request without a response.
func transportClass(err error) Class {
	if isTimeout(err) && !isDial(err) {
		return Timeout
	}
	return Unavailable
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// isDial reports whether the connection failed, so that nothing was sent.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// statusClass returns the class of a response with a failure status. The code or type in
// the body counts most, then the status; the message only distinguishes failures with the
// same status.
func statusClass(status int, f serverError) Class {
	c := f.class()
	switch {
	case status == http.StatusTooManyRequests && f.says("request too large"),
		status == http.StatusRequestEntityTooLarge:
		return ContextTooLong // exceeds the limit per minute or of the gateway by itself
	case c != "":
		return c
	case status == http.StatusTooManyRequests && f.saysQuota(), status == http.StatusPaymentRequired:
		return QuotaExhausted
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired:
		return Auth
	case status == http.StatusForbidden || status == http.StatusBadRequest:
		switch {
		case f.saysContext():
			return ContextTooLong
		case f.saysQuota():
			return QuotaExhausted
		case status == http.StatusForbidden || f.says("api key"):
			return Auth
		}
		return BadRequest
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout, status == 524: // 524 is Cloudflare's
		return Timeout
	case status == http.StatusUnprocessableEntity || status == http.StatusInternalServerError:
		if f.saysContext() {
			return ContextTooLong // some versions of vLLM and llama.cpp
		}
	}
	switch {
	case status == http.StatusConflict, status == http.StatusTooEarly:
		return Overloaded
	case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported:
		return BadRequest
	case status >= 500:
		return Overloaded
	}
	return BadRequest
}

// class returns the class for the server's code or type, empty if there is none.
func (f serverError) class() Class {
	for _, name := range f.names {
		switch strings.ToLower(name) {
		case "insufficient_quota", "insufficient_user_quota", "billing_hard_limit_reached", "billing_not_active",
			"insufficient_balance", "insufficient_credits", "billing_error", "payment_required":
			return QuotaExhausted
		case "context_length_exceeded", "context_window_exceeded", "exceed_context_size_error", "request_too_large",
			"string_above_max_length", "tokens_limit_reached", "max_tokens_exceeded":
			return ContextTooLong
		case "content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked",
			"data_inspection_failed":
			return ContentFilter
		case "invalid_api_key", "incorrect_api_key", "authentication_error", "permission_error", "permission_denied",
			"unauthorized", "unauthenticated", "invalid_authentication", "account_deactivated":
			return Auth
		case "rate_limit_exceeded", "rate_limit_error", "rate_limit_reached", "too_many_requests", "resource_exhausted":
			return RateLimited
		case "overloaded_error", "engine_overloaded", "server_overloaded":
			return Overloaded
		}
	}
	return ""
}

// says reports whether the message contains one of the texts.
func (f serverError) says(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(f.message, text) })
}

// saysContext reports whether the message of a server without error codes says that the
// input is too long.
func (f serverError) saysContext() bool {
	return f.says(
		"maximum context length", "context length exceeded", "context_length_exceeded", // OpenAI, vLLM, LiteLLM
		"maximum model length", "max_model_len", "longer than the model's context", // vLLM, SGLang
		"available context size", "exceeds the context", "exceed the context", "exceed context", "context window", // llama.cpp, Ollama, LM Studio
		"context limit", "prompt is too long", "input is too long", // Anthropic, Bedrock
		"exceeds the maximum number of tokens", "input token count", // Gemini
		"reduce the length", "maximum input length", "range of input length", "too many tokens", "request too large",
	)
}

func (f serverError) saysQuota() bool {
	return f.says("insufficient balance", "insufficient credit", "credit balance", "insufficient quota")
}
