package llm

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// verdict is what an exchange came to: an answer where class is empty, else a
// failure.
type verdict struct {
	class      Class
	status     int
	retryAfter time.Duration
	requestID  string

	text, refusal, finish string
	// usage is what the server reported, also with a failure.
	usage Usage
	// starved says that the room was used up before any text.
	starved bool
}

// judge decides what an exchange came to. It is the only judge of servers' words,
// and takes nothing from them but a class, numbers, and an answer's text.
func judge(x exchange) verdict {
	v := verdict{status: x.status, retryAfter: x.retryAfter, requestID: x.requestID}
	switch {
	case x.status == 0:
		v.class = unreached(x.err)
	case isSuccess(x.status) && x.err != nil && isTimeout(x.err):
		v.class = Timeout
	case isSuccess(x.status) && !x.whole:
		v.class = MalformedAnswer // cut off, or larger than any answer
	case isSuccess(x.status):
		v.readAnswer(x.body)
	default:
		v.class = refused(x.status, readFault(x.body))
		v.usage = readUsage(x.body)
	}
	if mayBeBilled(x, v) {
		v.usage.Unreported = 1
	}
	return v
}

// mayBeBilled reports whether a server may have done work without saying how much.
func mayBeBilled(x exchange, v verdict) bool {
	reported := v.usage.Input > 0 || v.usage.Output > 0
	return !reported && x.sent && (isSuccess(x.status) || x.status == 0 && !isDial(x.err))
}

// unreached is the class of a request without a response.
func unreached(err error) Class {
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

// isDial reports whether no connection was made, so that nothing was sent.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// refused is the class of a response that is a failure by its status. What the
// server calls it in a field counts most, then the status; words only tell apart
// what has one status.
func refused(status int, f fault) Class {
	c := f.named()
	switch {
	case status == http.StatusTooManyRequests && f.says("request too large"),
		status == http.StatusRequestEntityTooLarge:
		return ContextTooLong // by itself more than a minute may take, or than the gateway takes
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
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout, status == 524: // the last is Cloudflare's
		return Timeout
	case status == http.StatusUnprocessableEntity || status == http.StatusInternalServerError:
		if f.saysContext() {
			return ContextTooLong // vLLM and llama.cpp, of some versions
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

// named is the class that the server's own code or type stands for, empty where it
// stands for none.
func (f fault) named() Class {
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

func (f fault) says(words ...string) bool {
	for _, w := range words {
		if strings.Contains(f.message, w) {
			return true
		}
	}
	return false
}

// saysContext knows how servers without a code for it say that the input is too long.
func (f fault) saysContext() bool {
	return f.says(
		"maximum context length", "context length exceeded", "context_length_exceeded", // OpenAI, vLLM, LiteLLM
		"maximum model length", "max_model_len", "longer than the model's context", // vLLM, SGLang
		"available context size", "exceeds the context", "exceed the context", "exceed context", "context window", // llama.cpp, Ollama, LM Studio
		"context limit", "prompt is too long", "input is too long", // Anthropic, Bedrock
		"exceeds the maximum number of tokens", "input token count", // Gemini
		"reduce the length", "maximum input length", "range of input length", "too many tokens", "request too large",
	)
}

func (f fault) saysQuota() bool {
	return f.says("insufficient balance", "insufficient credit", "credit balance", "insufficient quota")
}
