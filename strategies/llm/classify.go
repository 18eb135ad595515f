package llm

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// classification is the interpretation of a response: an answer if class is empty, else
// a failure.
type classification struct {
	class      Class
	status     int
	retryAfter time.Duration
	requestID  string

	text, refusal, finish string
	// model is the name of the model that answered, by the server.
	model string
	// usage is the usage that the server reported, also with a failure.
	usage Usage
	// exhausted reports whether the output limit was used up before any text.
	exhausted bool
	// server is the error of the server, not fit to be shown yet.
	server ServerError
}

// classify interprets a response to a request for a model of that name. Nothing else parses
// the texts of servers.
func classify(r response, model string) classification {
	c := classification{status: r.status, retryAfter: r.retryAfter, requestID: r.requestID, usage: r.usage}
	e, named := errors.AsType[*openai.APIError](r.err)
	switch {
	case named:
		c.server = newServerError(e)
	case r.sent && r.status == 0:
		c.server.Message = transportText(r.err)
	}
	reported := c.usage.Input > 0 || c.usage.Output > 0
	switch {
	case !r.sent: // the library refuses it
		c.class, c.server.Message = BadRequest, r.err.Error()
		return c
	case (r.status == 0 || isSuccess(r.status)) && isTimeout(r.err) && !r.unconnected:
		c.class = Timeout
	case r.status == 0:
		c.class, reported = Unavailable, r.unconnected
	case isSuccess(r.status) && !r.complete:
		c.class = MalformedAnswer // truncated, or larger than any answer
	case isSuccess(r.status) && named: // an error in place of an answer
		c.class = cmp.Or(c.server.class(), MalformedAnswer)
	case isSuccess(r.status):
		c.readAnswer(r.answer.Choices[0])
	default:
		c.class = statusClass(r.status, c.server, model)
		reported = true
	}
	if !reported { // and may be billed
		c.usage.Estimated = 1
	}
	return c
}

// readAnswer interprets the first choice of an answer.
func (c *classification) readAnswer(choice openai.ChatCompletionChoice) {
	text, finish := withoutReasoning(choice.Message.Content), string(choice.FinishReason)
	blank := strings.TrimSpace(text) == ""
	switch {
	case finish == finishFilter:
		c.class = ContentFilter
	case finish == finishError, blank && strings.TrimSpace(choice.Message.Refusal) == "":
		c.class, c.exhausted = MalformedAnswer, finish == FinishLength
	default:
		c.text, c.refusal, c.finish = text, choice.Message.Refusal, finish
	}
}

// withoutReasoning removes the reasoning at the beginning of a text, for servers without a
// field for it. Reasoning that does not end is followed by no answer.
func withoutReasoning(s string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(s, " \t\r\n"), "<think>")
	if !ok {
		return s
	}
	_, answer, _ := strings.Cut(rest, "</think>")
	return strings.TrimLeft(answer, " \t\r\n")
}

// transportText returns the reason why a request has no response, such as "dial tcp 127.0.0.1:9:
// connect: connection refused", without URLs, which may hold a password of a proxy.
func transportText(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return regexp.MustCompile(`\S*:/\S*`).ReplaceAllString(err.Error(), "[URL]")
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// statusClass returns the class of a response with a failure status. The code or type in
// the body counts most, then the status; the message only distinguishes failures with the
// same status.
func statusClass(status int, f ServerError, model string) Class {
	c := f.class()
	switch {
	case status == http.StatusTooManyRequests && f.says("request too large"),
		status == http.StatusRequestEntityTooLarge:
		return ContextTooLong // exceeds the limit per minute or of the gateway by itself
	case c != "":
		return c
	case status == http.StatusNotFound && (f.Param == "model" || f.says("model", "deployment", strings.ToLower(model))):
		return ModelNotFound // and else the address is wrong
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
		case f.saysNoModel():
			return ModelNotFound
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
func (f ServerError) class() Class {
	for _, name := range []string{f.inner, f.Code, f.Type} {
		switch strings.ToLower(name) {
		case "model_not_found", "deploymentnotfound", "model_not_available", // OpenAI, Azure, Together
			"model_not_supported", "unknown_model", "invalid_model", // Hugging Face, GitHub, Mistral
			"invalidendpointormodel.notfound": // Ark
			return ModelNotFound
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

// says reports whether the beginning of the message contains one of the texts, in lower case.
func (f ServerError) says(texts ...string) bool {
	const most = 1000 // after these, the message may repeat the request
	message := strings.ToLower(f.Message[:min(len(f.Message), most)])
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(message, text) })
}

// saysNoModel reports whether the message of a server that refuses unknown models as bad
// requests, without a code, says that it does not know the model.
func (f ServerError) saysNoModel() bool {
	// DeepSeek, SiliconFlow, llama.cpp, Cloudflare, LiteLLM, OpenRouter
	return f.says("model not exist", "model does not exist", "model not found", "no such model", "invalid model name", "not a valid model")
}

// saysContext reports whether the message of a server without error codes says that the
// input is too long.
func (f ServerError) saysContext() bool {
	return f.says(
		"maximum context length", "context length exceeded", "context_length_exceeded", // OpenAI, vLLM, LiteLLM
		"maximum model length", "max_model_len", "longer than the model's context", // vLLM, SGLang
		"available context size", "exceeds the context", "exceed the context", "exceed context", // llama.cpp, Ollama
		"context window",                                           // LM Studio
		"context limit", "prompt is too long", "input is too long", // Anthropic, Bedrock
		"exceeds the maximum number of tokens", "input token count", // Gemini
		"reduce the length", "maximum input length", "range of input length", "too many tokens", "request too large",
	)
}

func (f ServerError) saysQuota() bool {
	return f.says("insufficient balance", "insufficient credit", "credit balance", "insufficient quota")
}
