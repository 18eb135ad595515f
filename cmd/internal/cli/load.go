package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Item is a session to import, or the error with which reading one failed.
type Item struct {
	chat.Session
	// Where is the origin of the session for messages, such as "a.jsonl: line 3".
	Where string
	// File is the path of the file, if any.
	File string
	// Format is the format of the file; Report counts the records read.
	Format string
	Report formats.ReadReport
	// Offset is the number of messages of the session in earlier items.
	Offset int
	// Renamed reports that another conversation of this import has the original id.
	Renamed bool
	// Err is set if there is no session. Fatal ends the import.
	Err   error
	Fatal bool
}

// Importer imports sessions concurrently, each in one transaction. Importing again changes
// nothing, as ids of messages without one are derived from position and content.
type Importer struct {
	Store *store.Store
	// Tenant owns the sessions.
	Tenant string
	// Models adds to the models whose tokens can be counted.
	Models tokens.Table
	ImportOptions
	// Done, if set, is called for every imported item, from any goroutine.
	Done func(Item)
}

// ImportOptions holds the settings of an import, with the tags of their flags.
type ImportOptions struct {
	Count         string `enum:"exact,estimate" default:"exact" help:"Count tokens with the model's tokenizer, or the closest there is, or estimate them by length (exact, estimate)."`
	Model         string `placeholder:"NAME" help:"Model of sessions that name none."`
	SessionPrefix string `placeholder:"TEXT" help:"Prefix of every session id."`
	KeepGoing     bool   `help:"Skip lines and sessions that cannot be imported, and report them at the end."`
	DropReasoning bool   `xor:"reasoning" help:"Omit the models' reasoning and its signatures."`
	SameOwner     bool   `xor:"reasoning" help:"Keep signed and encrypted reasoning. Without this flag it is left out, as providers bind it to the account and the end user that it was written for."`
	Workers       int    `default:"4" range:"1,64" help:"Number of sessions imported concurrently."`
}

// Imported is the result of an import.
type Imported struct {
	Sessions int         `json:"sessions"`
	Renamed  int         `json:"renamed"` // of Sessions: the id was taken by another conversation
	Messages int         `json:"messages"`
	New      int         `json:"new_messages"` // of Messages; the others existed
	Tokens   chat.Tokens `json:"tokens"`
	Counters []string    `json:"counters"` // names of the token counters
	Repairs  int         `json:"repairs"`  // replaced bytes that Postgres cannot store
	Repaired int         `json:"repaired"` // runs of kind repair, by which the appends made views valid
	// Formats counts the sessions in formats other than chat-completions, Other the
	// records that are not messages by kind, and Dropped the omitted content by name.
	Formats map[string]int `json:"formats,omitempty"`
	Other   map[string]int `json:"other_records,omitempty"`
	Dropped map[string]int `json:"left_out,omitempty"`
	// First is where the first of each kind of Other and Dropped is.
	First map[string]string `json:"first,omitempty"`
	// Skipped lists the lines of sessions that could not be read.
	Skipped  []Failure `json:"skipped_lines,omitempty"`
	Failures []Failure `json:"failures"`
	Seconds  float64   `json:"seconds"`
}

// Failure is a session or a line that was not imported.
type Failure struct {
	Where   string `json:"where"`
	Session string `json:"session,omitempty"`
	Error   string `json:"error"`
}

// Run imports the items. Without KeepGoing it returns the first error, after the imports
// in progress have ended. Items of one session are imported in order.
func (im *Importer) Run(ctx context.Context, items iter.Seq[Item]) (Imported, error) {
	start := time.Now()
	parent := ctx
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	l := &load{
		Importer: im, stop: cancel, total: Imported{Failures: []Failure{}}, sessions: map[string]bool{}, counters: map[string]bool{},
	}
	queues := make([]chan Item, cmp.Or(im.Workers, 4))
	var workers sync.WaitGroup
	for i := range queues {
		queues[i] = make(chan Item)
		workers.Go(func() { l.work(parent, ctx, queues[i]) })
	}
	for item := range items {
		if item.Err != nil && parent.Err() != nil {
			break // interrupted; the item is not at fault
		}
		if item.Err != nil {
			l.failed(item, item.Err, item.Fatal)
		} else {
			item.ID = im.SessionPrefix + item.ID
			select {
			case queues[maphash.String(seed, item.ID)%uint64(len(queues))] <- item:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	for _, q := range queues {
		close(q)
	}
	workers.Wait()
	l.total.Sessions, l.total.Counters, l.total.Seconds = len(l.sessions), sortedKeys(l.counters), time.Since(start).Seconds()
	return l.total, context.Cause(ctx)
}

// errEarlierPart is the error of an item whose session would have a gap.
var errEarlierPart = errors.New("an earlier part of this session was not imported")

type load struct {
	*Importer
	stop context.CancelCauseFunc

	mu       sync.Mutex
	total    Imported
	sessions map[string]bool
	counters map[string]bool
}

// work imports items until stopped is cancelled; an import in progress is then finished,
// unless ctx is cancelled too.
func (l *load) work(ctx, stopped context.Context, queue <-chan Item) {
	broken := map[string]bool{} // sessions with a part that is missing
	for item := range queue {
		if stopped.Err() != nil {
			continue
		}
		if broken[item.ID] {
			l.failed(item, errEarlierPart, false)
			continue
		}
		err := l.put(ctx, item)
		switch {
		case ctx.Err() != nil:
			return // interrupted; the item may have been imported
		case err != nil:
			broken[item.ID] = true
			l.failed(item, err, errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotMigrated))
		case l.Done != nil:
			l.Done(item)
		}
	}
}

func (l *load) put(ctx context.Context, item Item) error {
	reasoning := 0
	if l.DropReasoning {
		item.Messages, reasoning = formats.WithoutReasoning(item.Messages)
	}
	repairs := item.Repairs
	item.Messages = slices.Clone(item.Messages)
	for i := range item.Messages {
		m := &item.Messages[i]
		repairs += chat.Sanitize(m)
		if m.ID == "" {
			m.ID = messageID(item.ID, item.Offset+i, m)
		}
	}
	signed := 0
	if !l.SameOwner {
		item.Messages, signed = formats.WithoutSigned(item.Messages)
	}
	if len(item.Messages) == 0 {
		return errors.New("the session has no messages")
	}
	model := cmp.Or(item.Model, l.Model)
	k := store.Key{Tenant: l.Tenant, Session: item.ID}
	var counter tokens.Counter
	if l.Count != "estimate" {
		counter = l.Models.ForModel(model)
	}
	msgs := make([]store.NewMessage, len(item.Messages))
	var sum chat.Tokens
	for i := range item.Messages {
		m := &msgs[i]
		m.Message = item.Messages[i]
		if counter != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			m.Tokens, m.Counter = counter.Message(&m.Message), counter.Name()
			sum += m.Tokens
		}
	}
	before, err := l.state(ctx, k)
	if err != nil {
		return err
	}
	_, more, err := l.Store.Import(ctx, k, model, msgs)
	if err != nil {
		return err
	}
	after, err := l.state(ctx, k)
	if err != nil {
		return err
	}
	repaired := 0
	if changes := after.Revision - before.Revision; changes > 0 {
		runs, err := l.Store.Operator.Runs(ctx, store.RunFilter{Key: k, Status: store.StatusApplied, Limit: int(changes)})
		if err != nil {
			return err
		}
		for _, r := range runs {
			if r.Kind == "repair" && r.Revision > before.Revision {
				repaired++
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if item.Renamed && !l.sessions[item.ID] {
		l.total.Renamed++
	}
	l.sessions[item.ID] = true
	l.report(item, map[string]int{"reasoning": reasoning, "signed reasoning": signed})
	l.total.Messages += len(msgs)
	l.total.New += int(after.Messages - before.Messages)
	l.total.Repairs += repairs + more
	l.total.Repaired += repaired
	if counter != nil {
		l.counters[counter.Name()] = true
		l.total.Tokens += sum
	} else {
		l.counters[chat.CounterBytes3] = true
		l.total.Tokens += after.TotalTokens - before.TotalTokens
	}
	return nil
}

// report adds the counts of an imported session to the result; reasoning are those left out.
func (l *load) report(item Item, reasoning map[string]int) {
	if item.Format != "" && item.Format != "chat" {
		add(&l.total.Formats, map[string]int{item.Format: 1})
	}
	add(&l.total.Other, item.Report.Other)
	add(&l.total.Dropped, item.Report.Dropped)
	maps.DeleteFunc(reasoning, func(_ string, n int) bool { return n == 0 })
	add(&l.total.Dropped, reasoning)
	for kind, line := range item.Report.First {
		if l.total.First == nil {
			l.total.First = map[string]string{}
		}
		if l.total.First[kind] == "" {
			l.total.First[kind] = fmt.Sprintf("%s: line %d", item.File, line)
		}
	}
	for _, skipped := range item.Report.Skipped {
		l.total.Skipped = append(l.total.Skipped, Failure{
			Where:   fmt.Sprintf("%s: line %d", item.File, skipped.Line),
			Session: item.ID, Error: skipped.Reason,
		})
	}
	for key := range item.Extra { // the store keeps id and model only
		add(&l.total.Dropped, map[string]int{"session " + key: 1})
	}
}

// add adds the counts of more to sum.
func add(sum *map[string]int, more map[string]int) {
	if *sum == nil && len(more) > 0 {
		*sum = map[string]int{}
	}
	for name, n := range more {
		(*sum)[name] += n
	}
}

func (l *load) state(ctx context.Context, k store.Key) (store.SessionRow, error) {
	row, err := l.Store.Session(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return row, err
}

func (l *load) failed(item Item, err error, fatal bool) {
	l.mu.Lock()
	l.total.Failures = append(l.total.Failures, Failure{Where: item.Where, Session: item.ID, Error: err.Error()})
	l.mu.Unlock()
	if !fatal && l.KeepGoing {
		return
	}
	if item.Where != "" {
		err = fmt.Errorf("%s: %w", item.Where, err)
	}
	l.stop(err)
}

// messageID derives the id of a message from its session, index and content, so that
// repeated imports of one history give the same ids.
func messageID(session string, index int, m *chat.Message) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d\x00", session, index)
	h.Write(m.AppendJSON(nil))
	return fmt.Sprintf("import-%d-%x", index, h.Sum(nil)[:8])
}
