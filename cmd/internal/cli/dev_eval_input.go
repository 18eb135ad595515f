//go:build !nodev

package cli

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/formats"
)

type evalInput struct {
	all     iter.Seq2[eval.Session, error]
	sources []string // names for the report
	unit    string   // of total
	total   int64
	close   func()
}

// input opens the source of the sessions. The caller closes it.
func (c *evalCmd) input(ctx context.Context, e *Env, cfg config.Config) (evalInput, error) {
	var in evalInput
	var err error
	if paths := append(slices.Clone(c.From), c.Files...); len(paths) > 0 {
		in, err = c.files(ctx, e, paths)
	} else {
		in, err = c.stored(ctx, e, cfg)
	}
	if err == nil && c.Limit > 0 {
		in.total, in.unit = 0, "sessions" // the total is unknown
		in.all = first(in.all, c.Limit)
	}
	return in, err
}

// first yields the first n sessions, each with weight 1.
func first(all iter.Seq2[eval.Session, error], n int) iter.Seq2[eval.Session, error] {
	return func(yield func(eval.Session, error) bool) {
		left := n
		for s, err := range all {
			s.Weight = 1
			left--
			if !yield(s, err) || left == 0 {
				return
			}
		}
	}
}

// files returns the sessions of files in the formats of import.
func (c *evalCmd) files(ctx context.Context, e *Env, paths []string) (evalInput, error) {
	if _, err := formats.Lookup(c.Format); err != nil && c.Format != formats.Auto {
		return evalInput{}, wrong("--format: %w", err)
	}
	all, size, err := openSources(ctx, paths, e.Stdin, c.Format)
	if err != nil {
		return evalInput{}, err
	}
	in := evalInput{unit: "bytes replayed", total: size, close: all.close}
	for _, s := range all {
		in.sources = append(in.sources, s.path)
	}
	in.all = func(yield func(eval.Session, error) bool) {
		known := conversations{}
		var read int64 // bytes since the last session
		for _, s := range all {
			n := 0
			more := s.items(known, func(n int64) { read += n }, func(item Item) bool {
				if item.Err != nil {
					yield(eval.Session{}, &exitError{exitUsage, fmt.Errorf("%s: %w", item.Where, item.Err)})
					return false
				}
				n++
				one := eval.Session{Name: item.ID, Corpus: s.path, Model: cmp.Or(item.Model, c.Model), Messages: item.Messages, Facts: retention.FactsOf(&item.Session), Weight: read}
				read = 0
				return yield(one, nil)
			})
			if more && n == 0 {
				more = yield(eval.Session{}, wrong("%s: no session in it", s.path))
			}
			if !more {
				return
			}
		}
	}
	return in, nil
}

// stored returns stored sessions with all their messages.
func (c *evalCmd) stored(ctx context.Context, e *Env, cfg config.Config) (evalInput, error) {
	st, err := e.Open(ctx)
	if err != nil {
		return evalInput{}, err
	}
	in := evalInput{unit: "sessions", total: int64(len(c.Session)), close: func() {}, sources: []string{"tenant " + cfg.Tenant}}
	log := exportCmd{Log: true}
	in.all = func(yield func(eval.Session, error) bool) {
		for row, err := range sessionRows(ctx, st, cfg.Tenant, c.Session) {
			var s chat.Session
			if err == nil {
				s, err = log.session(ctx, st, row)
			}
			if !yield(eval.Session{Name: s.ID, Model: cmp.Or(s.Model, c.Model), Messages: s.Messages, Facts: retention.FactsOf(&s), Weight: 1}, err) {
				return
			}
		}
	}
	return in, nil
}
