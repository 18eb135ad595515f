package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sessionstore/compactor/store"
)

const (
	// feedPause is the least time between two reads of a tenant's events, feedPoll the longest.
	feedPause, feedPoll = 200 * time.Millisecond, 2 * time.Second
	// feedOverlap is how far back events are read again: no transaction that ends a run takes longer.
	feedOverlap = 10 * time.Second
	heartbeat   = 15 * time.Second
	// maxBehind is how many events a client may be behind; then its stream ends, and it continues by
	// Last-Event-ID, which reaches back for maxBack.
	maxBehind = 256
	maxBack   = 24 * time.Hour
)

// feeds read the events of the tenants that have streams. Safe for concurrent use.
type feeds struct {
	server *Server
	mu     sync.Mutex
	of     map[string]*feed
	// listening reports whether listen runs.
	listening bool
}

// feed is the events of a tenant, "" for all.
type feed struct {
	stop    context.CancelFunc
	ready   chan struct{} // closed once the events up to now are known, which it does not send
	wake    chan struct{}
	streams map[chan *store.Event]string // with the secrets of their keys
}

// subscribe returns a channel of the events of a tenant from now on, and ends that. The channel is
// closed when its reader is too far behind, or the key of the secret no longer in force.
func (f *feeds) subscribe(ctx context.Context, tenant, secret string) (events chan *store.Event, end func()) {
	f.mu.Lock()
	if f.of == nil {
		f.of = map[string]*feed{}
	}
	t := f.of[tenant]
	if t == nil {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		t = &feed{stop: stop, ready: make(chan struct{}), wake: make(chan struct{}, 1), streams: map[chan *store.Event]string{}}
		f.of[tenant] = t
		go f.read(own, t, tenant)
		if !f.listening {
			f.listening = true
			go f.listen(context.WithoutCancel(ctx))
		}
	}
	events = make(chan *store.Event, maxBehind)
	t.streams[events] = secret
	f.mu.Unlock()
	select {
	case <-t.ready:
	case <-ctx.Done():
	}
	return events, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(t.streams, events); len(t.streams) == 0 && f.of[tenant] == t {
			t.stop()
			delete(f.of, tenant)
		}
	}
}

// open returns the number of streams of a tenant.
func (f *feeds) open(tenant string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.of[tenant]; t != nil {
		return len(t.streams)
	}
	return 0
}

// listen wakes the feeds when a run has ended, and from time to time, as long as there are any.
func (f *feeds) listen(ctx context.Context) {
	l := f.server.o.Store.Reader.Listener()
	defer l.Close(ctx)
	for {
		if err := l.Wait(ctx, feedPoll); err != nil {
			time.Sleep(feedPoll)
		}
		f.mu.Lock()
		for _, t := range f.of {
			select {
			case t.wake <- struct{}{}:
			default:
			}
		}
		f.listening = len(f.of) > 0
		again := f.listening
		f.mu.Unlock()
		if !again {
			return
		}
	}
}

// read reads the events of a tenant and sends them to its streams.
func (f *feeds) read(ctx context.Context, t *feed, tenant string) {
	sent := map[string]time.Time{}
	var from time.Time // by the clock of the database; a stream that needs earlier ones reads them itself
	for first := true; ; first = false {
		f.dismiss(ctx, t)
		now, err := f.server.o.Store.Reader.Now(ctx)
		if err == nil {
			if from.IsZero() {
				from = now
			}
			err = f.server.bound(tenant).Reader.EachEvent(ctx, tenant, from.Add(-feedOverlap), func(e store.Event) error {
				if name := e.Name(); sent[name].IsZero() {
					if sent[name] = e.At; !first {
						f.send(t, &e)
					}
				}
				return nil
			})
		}
		if err == nil {
			from = now
		}
		if err != nil && ctx.Err() == nil {
			f.server.o.Logger.WarnContext(ctx, "events cannot be read", "error", err.Error())
		}
		for name, at := range sent {
			if at.Before(from.Add(-feedOverlap)) {
				delete(sent, name)
			}
		}
		if first {
			close(t.ready)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(feedPause):
		}
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
	}
}

// dismiss ends the streams of a feed whose keys are no longer in force.
func (f *feeds) dismiss(ctx context.Context, t *feed) {
	over := map[string]bool{}
	f.mu.Lock()
	for _, secret := range t.streams {
		over[secret] = false
	}
	f.mu.Unlock()
	for secret := range over {
		_, err := f.server.keys.find(ctx, secret, "")
		over[secret] = problemOf(err).Status == http.StatusUnauthorized
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for events, secret := range t.streams {
		if over[secret] {
			close(events)
			delete(t.streams, events)
		}
	}
}

// send sends an event to the streams of a feed.
func (f *feeds) send(t *feed, e *store.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for events := range t.streams {
		select {
		case events <- e:
		default:
			close(events)
			delete(t.streams, events)
		}
	}
}

// events registers the stream of events.
func (a *api) events() {
	const path = "/v1/events"
	a.mux.HandleFunc("GET "+path, a.s.raw(reads, a.s.streamEvents))
	a.OpenAPI().AddOperation(&huma.Operation{
		Method: http.MethodGet, Path: path, OperationID: "stream-events", Summary: "Follow the ends of runs and the changes of sweeps",
		Tags: []string{"events"}, Extensions: map[string]any{"x-scope": reads},
		Description: "Server-sent events: run at its end, session when its view has another revision, sweep when its status changes. " +
			"Last-Event-ID continues after an event of the last day. One may come twice, with the same id; one of a transaction of more " +
			"than ten seconds may not come, and is in /v1/runs.",
		Parameters: []*huma.Param{tenantParam, {
			Name: "Last-Event-ID", In: "header", Description: "The id of the last event that was read.", Schema: &huma.Schema{Type: huma.TypeString},
		}},
		Responses: map[string]*huma.Response{
			"200": {Description: "A stream that ends when the server stops.", Content: map[string]*huma.MediaType{
				"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
			}},
			"default": {Description: "A problem.", Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}},
			}},
		},
	})
}

// streamEvents answers with events until the client goes.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, c *caller) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return problem(http.StatusServiceUnavailable, "too_many_streams", "%d streams of events are open (api.max_streams)", cap(s.streams)).
			with("Retry-After", "10")
	}
	if most := (cap(s.streams) + 1) / 2; c.key.Tenant != nil && s.feeds.open(c.tenant) >= most {
		return problem(http.StatusServiceUnavailable, "too_many_streams",
			"%d streams of events of the tenant are open, half of api.max_streams", most).
			with("Retry-After", "10")
	}
	last := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("last_event_id"))
	micros, _, _ := strings.Cut(last, "-")
	at, err := strconv.ParseInt(cmp.Or(micros, "0"), 10, 64)
	if err != nil {
		return invalid("header.Last-Event-ID", "Last-Event-ID: want the id of an event")
	}
	now, err := s.o.Store.Reader.Now(r.Context())
	if err != nil {
		return err
	}
	after := time.UnixMicro(at).Add(-feedOverlap)
	if last != "" && now.Sub(after) > maxBack {
		p := problem(http.StatusGone, "too_old", "Last-Event-ID reaches back for %s: read /v1/runs", maxBack)
		p.Field = "header.Last-Event-ID"
		return p
	}
	live, end := s.feeds.subscribe(r.Context(), c.tenant, c.secret)
	defer end()
	out := &eventStream{w: w, control: http.NewResponseController(w), sent: map[string]bool{}, recent: now.Add(-2 * feedOverlap)}
	_ = out.control.SetReadDeadline(time.Time{}) // the server's would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if err := out.write(": connected\n\n"); err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	if last != "" {
		if err := c.store.Reader.EachEvent(r.Context(), c.tenant, after, out.event); err != nil {
			failed(r.Context(), err)
			return nil
		}
	}
	out.recent = time.Time{}
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.stopping.Done():
			return nil
		case e, ok := <-live:
			if !ok || out.event(*e) != nil {
				return nil
			}
		case <-time.After(heartbeat):
			if out.write(": \n\n") != nil {
				return nil
			}
		}
	}
}

// eventStream writes events to a client.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// sent holds the events after recent that it began with, which may come once more. recent is zero
	// once it has begun.
	sent   map[string]bool
	recent time.Time
}

// event writes an event, unless it has.
func (s *eventStream) event(e store.Event) error {
	name := e.Name()
	if s.sent[name] {
		return nil
	}
	if !s.recent.IsZero() && e.At.After(s.recent) {
		s.sent[name] = true
	}
	if err := s.send(name, e.Kind, e); err != nil || e.Revision == 0 {
		return err
	}
	return s.send(name+"-session", "session", ChangedView{e.Tenant, e.Session, e.Revision})
}

// ChangedView is the data of an event of the type session: the view has another revision.
type ChangedView struct {
	Tenant   string `json:"tenant"`
	Session  string `json:"session"`
	Revision int64  `json:"revision"`
}

func (s *eventStream) send(id, kind string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, kind, raw))
}

func (s *eventStream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(2 * heartbeat)) // instead of the server's
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
