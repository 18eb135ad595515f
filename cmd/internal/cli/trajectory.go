package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/trajectory"
)

type trajectoryCmd struct {
	Compress trajectoryCompressCmd `cmd:"" help:"Compress ShareGPT files to a token target."`
}

// trajectoryCompressCmd implements `compactor trajectory compress`. --target is the
// policy's flag, which every command has.
type trajectoryCompressCmd struct {
	Files         []string `arg:"" name:"file" help:"JSONL files, one trajectory per line; - is standard input."`
	Out           string   `short:"o" aliases:"output" placeholder:"FILE" help:"File to write; default: standard output. The file is created once it is complete."`
	Metrics       string   `placeholder:"FILE" help:"File for the metrics, one JSON object per trajectory."`
	SummaryTokens int      `default:"750" range:"0," placeholder:"TOKENS" help:"Maximum tokens of a summary (${default})."`
	ProtectFirst  []string `enum:"system,human,gpt,tool" default:"system,human,gpt,tool" placeholder:"WHO" help:"Speakers whose first turn is kept (${default})."`
	ProtectLast   int      `default:"4" range:"0," placeholder:"TURNS" help:"Number of turns kept at the end (${default})."`
	Notice        bool     `default:"true" negatable:"" help:"Mention the summary in the system turn of a compressed trajectory (the default)."`
	Model         string   `placeholder:"NAME" help:"Count with the tokenizer of this model; default: a quarter of the characters."`
	Workers       int      `default:"4" range:"1,256" help:"Number of trajectories compressed concurrently (${default})."`
}

type trajectoryReport struct {
	File string `json:"file"`
	trajectory.BatchReport
	Failures []Failure `json:"failures"` // trajectories copied unchanged
	Seconds  float64   `json:"seconds"`
}

// maxFailures bounds the failures that a report lists.
const maxFailures = 1000

func (c *trajectoryCompressCmd) Run(ctx context.Context, e *Env) error {
	if e.JSON && c.Out == "" {
		return wrong("--json: requires --out, as standard output holds the trajectories")
	}
	report, err := c.compress(ctx, e)
	if err != nil {
		return err
	}
	if err := report.write(e); err != nil {
		return err
	}
	if report.Failed > 0 {
		return wrong("%s could not be compressed and passed through unchanged", term.Plural(report.Failed, "trajectory", "trajectories"))
	}
	return nil
}

// options returns the options that the flags set.
func (c *trajectoryCompressCmd) options(e *Env) (trajectory.Options, error) {
	o := trajectory.Defaults()
	if given, ok := e.flags["policy.target_tokens"]; ok {
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 {
			return o, wrong("--target: %q: want a number of tokens, 0 or more", given)
		}
		o.Target = n
	}
	o.SummaryTokens, o.ProtectFirst, o.ProtectLast = c.SummaryTokens, c.ProtectFirst, c.ProtectLast
	if !c.Notice {
		o.Notice = ""
	}
	if c.Model != "" {
		cfg, err := e.Config()
		if err != nil {
			return o, err
		}
		counter := cfg.Models.ForModel(c.Model)
		o.Count = func(text string) int { return int(counter.Text(text)) }
	}
	return o, nil
}

// compress compresses the files one after the other. The written files are complete even
// if lines failed, as those are copied.
func (c *trajectoryCompressCmd) compress(ctx context.Context, e *Env) (r trajectoryReport, err error) {
	options, err := c.options(e)
	if err != nil {
		return r, err
	}
	from, size, err := openSources(ctx, c.Files, e.Stdin, formats.Auto)
	if err != nil {
		return r, err
	}
	defer from.close()
	out, finish, err := createFile("--out", c.Out, e.Out.W, slices.Concat(c.Files, []string{c.Metrics})...)
	if err != nil {
		return r, err
	}
	defer finish(&err)
	metrics, finish, err := createFile("--metrics", c.Metrics, io.Discard, c.Files...)
	if err != nil {
		return r, err
	}
	defer finish(&err)
	started := e.now()
	r = trajectoryReport{File: c.Out, Failures: []Failure{}}
	progress := e.Err.Progress("bytes read", size)
	defer func() { progress.Done(term.Plural(r.Trajectories, "trajectory", "trajectories")) }()
	w, lines := bufio.NewWriterSize(out, 64<<10), bufio.NewWriterSize(metrics, 64<<10)
	encoder := json.NewEncoder(lines)
	var merr error
	for _, s := range from {
		_, err := trajectory.Run(ctx, countingReader{s.in, progress.Add}, w, trajectory.Batch{
			Options: options, Workers: c.Workers,
			Done: func(done trajectory.Outcome) {
				r.Add(done)
				merr = errors.Join(merr, encoder.Encode(r.note(s.path, done)))
			},
		})
		switch {
		case ctx.Err() != nil:
			return r, ctx.Err()
		case err != nil:
			return r, fmt.Errorf("%s: %w", s.path, err)
		case merr != nil:
			return r, fmt.Errorf("--metrics: %w", merr)
		}
	}
	r.Seconds = e.now().Sub(started).Seconds()
	return r, errors.Join(w.Flush(), lines.Flush())
}

// trajectoryLine is a line of the metrics file.
type trajectoryLine struct {
	File string `json:"file"`
	Line int    `json:"line"`
	trajectory.Metrics
	Error string `json:"error,omitempty"`
}

// note records the outcome of a trajectory and returns its metrics line.
func (r *trajectoryReport) note(path string, o trajectory.Outcome) trajectoryLine {
	line := trajectoryLine{File: path, Line: o.Line, Metrics: o.Metrics}
	if o.Err != nil {
		line.Error = o.Err.Error()
		if len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, Failure{Where: fmt.Sprintf("%s: line %d", path, o.Line), Error: line.Error})
		}
	}
	return line
}

// write writes the report, to standard error if standard output holds the trajectories.
func (r *trajectoryReport) write(e *Env) error {
	if e.JSON {
		return e.json(r)
	}
	to := e.Out
	if r.File == "" {
		to = e.Err
	}
	e.writeFailures(to, "NOT COMPRESSED", r.Failures, r.Failed, "--metrics has them all")
	change := func(before, after int64) string {
		return fmt.Sprintf("%s → %s (%s less)", term.Count(before), term.Count(after), term.Percent(before-after, before))
	}
	return to.Pairs(
		pair{"trajectories", r.Trajectories},
		pair{"compressed", r.Compressed},
		pair{"within the target", r.UnderTarget},
		pair{"still above it", r.StillOver},
		pair{"failed", r.Failed},
		pair{"tokens", change(r.OriginalTokens, r.CompressedTokens)},
		pair{"turns", change(r.OriginalTurns, r.CompressedTurns)},
		pair{"on average", when(r.Compressed > 0, fmt.Sprintf("to %.0f %% of the tokens, %.1f turns less, of those compressed",
			100*r.AverageRatio, r.AverageTurnsRemoved))},
		pair{"time", seconds(r.Seconds)},
	)
}
