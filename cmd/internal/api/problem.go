package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/worker"
)

// Problem is an error of the API, as in RFC 9457.
type Problem struct {
	Type   string `json:"type" doc:"Always about:blank; code tells problems apart."`
	Title  string `json:"title" doc:"The text of the status."`
	Status int    `json:"status"`
	Code   string `json:"code" doc:"What went wrong, for programs; stable."`
	Detail string `json:"detail" doc:"What went wrong, and what is allowed."`
	Field  string `json:"field,omitempty" doc:"The parameter or the part of the body at fault, as query.limit or body.model."`
	// Errors has one entry for each fault of a request with several.
	Errors []Fault `json:"errors,omitempty"`

	header http.Header
}

// Fault is one of several faults of a request.
type Fault struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

func problem(status int, code, detail string, args ...any) *Problem {
	if len(args) > 0 {
		detail = fmt.Sprintf(detail, args...)
	}
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// invalid returns the problem of a value that is not allowed.
func invalid(field, detail string, args ...any) *Problem {
	p := problem(http.StatusUnprocessableEntity, "invalid", detail, args...)
	p.Field = field
	return p
}

// first returns the problem with the field and the text of the first of its faults, and these if there are several.
func (p *Problem) first() *Problem {
	if len(p.Errors) > 0 {
		p.Field, p.Detail = p.Errors[0].Field, p.Errors[0].Detail
	}
	if len(p.Errors) < 2 {
		p.Errors = nil
	}
	return p
}

// with returns the problem with a header of its answer.
func (p *Problem) with(header, value string) *Problem {
	p.header = http.Header{header: {value}}
	return p
}

// kinds are the errors of the store with their status and code, the most specific first.
var kinds = []struct {
	err    error
	status int
	code   string
}{
	{store.ErrNotFound, http.StatusNotFound, "not_found"},
	{store.ErrInvalid, http.StatusUnprocessableEntity, "invalid"},
	{worker.ErrOptions, http.StatusUnprocessableEntity, "invalid"},
	{store.ErrConflict, http.StatusConflict, "conflict"},
	{store.ErrStale, http.StatusPreconditionFailed, "stale"},
	{store.ErrInUse, http.StatusConflict, "in_use"},
	{store.ErrNotApplicable, http.StatusConflict, "not_applicable"},
	{store.ErrArchived, http.StatusConflict, "archived"},
	{store.ErrPurged, http.StatusGone, "purged"},
	{store.ErrDamaged, http.StatusInternalServerError, "damaged"},
	{store.ErrSpendingLimit, http.StatusConflict, "spending_limit"},
	{store.ErrBusy, http.StatusServiceUnavailable, "busy"},
	{store.ErrForbidden, http.StatusForbidden, "forbidden"},
	{store.ErrNoSpace, http.StatusServiceUnavailable, "no_space"},
	{store.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	{store.ErrNotMigrated, http.StatusServiceUnavailable, "not_migrated"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout"},
	{context.Canceled, statusGone, "cancelled"},
}

// statusGone is the status in the log of a request whose client went away.
const statusGone = 499

// problemOf returns the problem that an error is. The texts of the store are meant for users and
// quote no content; those of other errors are not shown.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(large.Limit)
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			p := problem(k.status, k.code, err.Error())
			if errors.Is(err, store.ErrUnavailable) { // its text has the address, and comes before a key is known
				p.Detail = "the database cannot be reached or takes no work; the log of the server has the error"
			}
			if k.status == http.StatusServiceUnavailable {
				p = p.with("Retry-After", "1")
			}
			return p
		}
	}
	return problem(http.StatusInternalServerError, "internal", "the request failed; the log of the server has the error")
}

func tooLarge(limit int64) *Problem {
	return problem(http.StatusRequestEntityTooLarge, "too_large", "the body has more than %d bytes (api.max_body)", limit)
}

// The problems of the framework: requests that do not match the document.
func init() {
	huma.DefaultArrayNullable = false // empty lists are []
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		code := map[int]string{
			http.StatusNotFound: "no_such_path", http.StatusMethodNotAllowed: "method_not_allowed", http.StatusNotAcceptable: "not_acceptable",
			http.StatusRequestEntityTooLarge: "too_large",
			http.StatusUnsupportedMediaType:  "unsupported_media_type", http.StatusRequestTimeout: "timeout",
			http.StatusInternalServerError: "internal",
		}[status]
		if code == "" {
			code = "invalid"
		}
		for _, err := range errs {
			if own, ok := errors.AsType[*Problem](err); ok {
				return own
			}
			if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
				return tooLarge(large.Limit)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return problem(http.StatusRequestTimeout, "timeout", "the body came too slowly (api.read_timeout)")
			}
		}
		if detail == "cannot read request body" { // which the framework takes for its own fault
			return problem(http.StatusBadRequest, "invalid", "the body ended early, or is not gzip, as Content-Encoding says")
		}
		p := problem(status, code, detail)
		for _, err := range errs {
			fault := Fault{Detail: err.Error()}
			if d, ok := err.(huma.ErrorDetailer); ok { //nolint:errorlint // as the framework does
				fault = Fault{Field: d.ErrorDetail().Location, Detail: d.ErrorDetail().Message} // its value may be content
			}
			p.Errors = append(p.Errors, fault)
		}
		if p = p.first(); p.Field != "" {
			p.Detail = p.Field + ": " + p.Detail
		}
		return p
	}
}

// writeProblem writes a problem outside of the framework, in the shape of the path.
func writeProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	var body any = p
	kind := p.ContentType("")
	if isOpenAI(r.URL.Path) {
		body, kind = openAIError(p), "application/json"
	}
	for name, values := range p.header {
		w.Header()[name] = slices.Clone(values)
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(body)
}

// isOpenAI reports whether clients of OpenAI read the answers of a path.
func isOpenAI(path string) bool { return strings.HasPrefix(path, "/v1/responses") }

// OpenAIProblem is an error as clients of OpenAI read it.
type OpenAIProblem struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param" nullable:"true"`
		Code    string  `json:"code"`
	} `json:"error"`
}

// openAIError returns a problem in the shape that clients of OpenAI read.
func openAIError(p *Problem) (out OpenAIProblem) {
	kind := "invalid_request_error"
	switch {
	case p.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case p.Status == http.StatusForbidden:
		kind = "permission_error"
	case p.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case p.Status >= 500:
		kind = "server_error"
	}
	out.Error.Message, out.Error.Type, out.Error.Code = p.Detail, kind, p.Code
	if field := strings.TrimPrefix(p.Field, "body."); field != "" {
		out.Error.Param = &field
	}
	return out
}
