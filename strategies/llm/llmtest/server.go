package llmtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// requestLimit bounds the body of a request, in bytes.
const requestLimit = 256 << 20

// Request is a received request, without its key.
type Request struct {
	Model string
	// System and User hold the texts of all messages of that role.
	System, User string
	// MaxTokensField is the field with the output limit, empty for none; MaxTokens is its
	// value.
	MaxTokensField string
	MaxTokens      int
	// Temperature is nil if none was sent.
	Temperature *float64
	Effort      string
	// Authorized reports whether the request had a bearer token.
	Authorized bool
	At         time.Time
	// Behaviour is that of the step; Paid reports whether the response reported usage.
	Behaviour Behaviour
	Paid      bool
}

// Server plays a script. It is an http.Handler, or listens after Start. Safe for concurrent
// use: requests take the steps in the order of their arrival.
type Server struct {
	steps []Step
	loop  bool

	mu       sync.Mutex
	next     int // index of the current step
	played   int // number of requests that took it
	requests []Request

	http    *http.Server
	closed  chan struct{}
	closing sync.Once
}

// New returns a server that plays the steps and then Normal.
func New(steps ...Step) *Server { return Script{Steps: steps}.Server() }

// Server returns a server that plays the script.
func (s Script) Server() *Server {
	return &Server{steps: slices.Clone(s.Steps), loop: s.Loop, closed: make(chan struct{})}
}

// Start listens on a free port of the loopback interface and returns the base URL for
// clients. Call it at most once.
func (s *Server) Start() (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.mu.Lock()
	s.http = server
	s.mu.Unlock()
	go func() { _ = server.Serve(l) }() // ends with Close
	return "http://" + l.Addr().String() + "/v1", nil
}

// Close stops the server and ends all connections.
func (s *Server) Close() error {
	s.closing.Do(func() { close(s.closed) })
	s.mu.Lock()
	server := s.http
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Requests returns the requests received so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Calls returns the number of requests received so far.
func (s *Server) Calls() int { return len(s.Requests()) }

// Paid returns the number of responses with reported usage.
func (s *Server) Paid() int {
	n := 0
	for _, r := range s.Requests() {
		if r.Paid {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler. It serves chat completions below any path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		fail(w, http.StatusNotFound, "Invalid URL", invalidRequest, nil)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestLimit))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "Request too large", invalidRequest, nil)
		return
	}
	req, err := parse(body)
	if err != nil {
		fail(w, http.StatusBadRequest, "We could not parse the JSON body of your request", invalidRequest, nil)
		return
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	req.Authorized = key != ""
	req.At = time.Now()

	step := s.take()
	req.Behaviour, req.Paid = step.Behaviour, step.Behaviour.paid()
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	p := play{server: s, w: w, r: r, req: req, key: key, step: step}
	p.perform()
}

// take returns the step for the next request.
func (s *Server) take() Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == len(s.steps) && s.loop {
		s.next = 0
	}
	if s.next >= len(s.steps) {
		return Step{Behaviour: Normal}
	}
	step := s.steps[s.next]
	step.Behaviour = cmp.Or(step.Behaviour, Normal)
	if s.played++; s.played >= max(1, step.Times) {
		s.next, s.played = s.next+1, 0
	}
	return step
}

// parse reads a request in the format of OpenAI's API.
func parse(body []byte) (Request, error) {
	var raw struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		MaxTokens           *int     `json:"max_tokens"`
		MaxCompletionTokens *int     `json:"max_completion_tokens"`
		Temperature         *float64 `json:"temperature"`
		Effort              string   `json:"reasoning_effort"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return Request{}, err
	}
	req := Request{Model: raw.Model, Temperature: raw.Temperature, Effort: raw.Effort}
	for _, m := range raw.Messages {
		switch m.Role {
		case "system", "developer":
			req.System = joined(req.System, content(m.Content))
		case "user":
			req.User = joined(req.User, content(m.Content))
		}
	}
	switch {
	case raw.MaxCompletionTokens != nil:
		req.MaxTokensField, req.MaxTokens = "max_completion_tokens", *raw.MaxCompletionTokens
	case raw.MaxTokens != nil:
		req.MaxTokensField, req.MaxTokens = "max_tokens", *raw.MaxTokens
	}
	return req, nil
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}

// content returns the text of a string or of a list of parts.
func content(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // other types have no text
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
