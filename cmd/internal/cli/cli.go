// Package cli is the command line: one file per command, each a struct whose
// fields are its flags, and a text in the folder help. It wires the other
// packages together and turns their errors into lines and exit codes.
//
// It holds no compaction logic. Main takes all of its dependencies as arguments, so that
// tests call it directly.
package cli

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9/logging"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/formats"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// grammar declares the command line; kong derives the parser and the help from it. The
// parameters of a command's Run are resolved by their types: the context, *Env, the loaded
// config.Config, and the *store.Store that it names, connected.
type grammar struct {
	globals

	Serve     serveCmd     `cmd:"" group:"Roles:" help:"Run all roles in one process: scheduler, worker and HTTP API."`
	Worker    workerCmd    `cmd:"" group:"Roles:" help:"Run a worker, which takes runs from the queue and executes them."`
	Scheduler schedulerCmd `cmd:"" group:"Roles:" help:"Run a scheduler: sweeps, event runs and recovery of lost work."`
	API       apiCmd       `cmd:"" name:"api" group:"Roles:" help:"Serve the HTTP API alone."`
	Health    healthCmd    `cmd:"" group:"Roles:" help:"Ask the process of a role on this machine whether it is alive, or ready for work."`
	MCP       mcpCmd       `cmd:"" name:"mcp" group:"Roles:" help:"Serve the history of a session to its agent, as tools of MCP on standard input and output."`

	Migrate migrateCmd `cmd:"" group:"Database:" help:"Create or update the tables, or show which migrations are applied."`
	Import  importCmd  `cmd:"" group:"Database:" help:"Import histories from files or from a table of another database."`
	Export  exportCmd  `cmd:"" group:"Database:" help:"Write sessions to a file, in a format that import reads."`
	Attach  attachCmd  `cmd:"" group:"Database:" help:"Put an application's own table of messages under compaction, or compare it with the log."`
	Detach  detachCmd  `cmd:"" group:"Database:" help:"Undo attach: the table is as before, and its sessions stay in the log."`
	Doctor  doctorCmd  `cmd:"" group:"Database:" help:"Check connections, settings and the invariants of the data."`
	Stats   statsCmd   `cmd:"" group:"Database:" help:"Show what waits, and what the last hour and day have done and cost."`

	Sessions  sessionsCmd  `cmd:"" group:"Sessions:" help:"List sessions with their size and whether they are due."`
	View      viewCmd      `cmd:"" group:"Sessions:" help:"Show the view of a session, and why messages are excluded."`
	Compact   compactCmd   `cmd:"" group:"Sessions:" help:"Compact one session now."`
	Summary   summaryCmd   `cmd:"" group:"Sessions:" help:"Show a summary and its provenance, or the messages it covers."`
	Undo      undoCmd      `cmd:"" group:"Sessions:" help:"Undo a run."`
	Runs      runsCmd      `cmd:"" group:"Sessions:" help:"List runs, newest first, or show one of them."`
	Pin       pinCmd       `cmd:"" group:"Sessions:" help:"Keep a message in the view."`
	Unpin     unpinCmd     `cmd:"" group:"Sessions:" help:"Remove the pin of a message."`
	SetModel  setModelCmd  `cmd:"" group:"Sessions:" help:"Set the model of a session, and with it when the session is due."`
	Erase     eraseCmd     `cmd:"" group:"Sessions:" help:"Erase the words of messages, of a session or of a tenant for good."`
	Fork      forkCmd      `cmd:"" group:"Sessions:" help:"Make a session that goes on from a message of another one."`
	Archive   archiveCmd   `cmd:"" group:"Sessions:" help:"Compress the words of messages that have long been out of the view."`
	Restore   restoreCmd   `cmd:"" group:"Sessions:" help:"Bring archived words of a session back."`
	SetParent setParentCmd `cmd:"" group:"Sessions:" help:"Make a session the child of another one, whose labels then count for it."`

	Sweep       sweepCmd       `cmd:"" group:"Fleet:" help:"List, show, start, pause, resume, cancel or release sweeps over all due sessions."`
	Schedule    scheduleCmd    `cmd:"" group:"Fleet:" help:"List, show, pause, resume or run the schedules of sweeps, or fire ticks of the past."`
	Pause       pauseCmd       `cmd:"" group:"Fleet:" help:"Hold back the runs of a tenant, of a model, of a policy, or all."`
	Resume      resumeCmd      `cmd:"" group:"Fleet:" help:"End a pause."`
	Limit       limitCmd       `cmd:"" group:"Fleet:" help:"Limit what models may cost and how many runs start, of a tenant or of all."`
	BulkCompact bulkCompactCmd `cmd:"" group:"Fleet:" help:"Compact many sessions again, such as all of an earlier policy."`
	BulkUndo    bulkUndoCmd    `cmd:"" group:"Fleet:" help:"Undo many runs, such as all that a model wrote last night."`

	Key    keyCmd    `cmd:"" group:"Policies:" help:"Make, list, revoke or rotate keys of the HTTP API."`
	Policy policyCmd `cmd:"" group:"Policies:" help:"Apply, compare and explain policies for parts of the fleet."`

	CompactFile compactFileCmd `cmd:"" group:"Files:" help:"Compact the sessions of a file, without a server."`
	Trajectory  trajectoryCmd  `cmd:"" group:"Files:" help:"Compress recorded runs of agents (ShareGPT files) to a token target."`
	Strategies  strategiesCmd  `cmd:"" group:"Files:" help:"List the strategies, or the parameters of one with their meaning."`
	Models      modelsCmd      `cmd:"" group:"Files:" help:"List the windows of models, how their tokens are counted, and what reports have taught."`

	devCommands
	Config  configCmd  `cmd:"" group:"Other:" help:"Show the configuration, or write an example file."`
	Version versionCmd `cmd:"" group:"Other:" help:"Show the version of this binary."`
}

//go:embed help
var helpTexts embed.FS

// setHelp gives commands the texts of the folder help, which are named by their path: sweep.cancel.txt.
// lists replaces the names of lists, such as {{formats}}.
func setHelp(node *kong.Node, path string, lists *strings.Replacer) {
	for _, command := range node.Children {
		if text, err := helpTexts.ReadFile(path + command.Name + ".txt"); err == nil {
			command.Detail = lists.Replace(strings.TrimSuffix(string(text), "\n"))
		}
		setHelp(command, path+command.Name+".", lists)
	}
}

const description = `Keeps stored LLM conversations within the context window without deleting messages.

Settings come from --config, the environment (DATABASE_URL, REDIS_URL, COMPACTOR_<SECTION>_<KEY>) and flags; every setting of the configuration file has a flag (database.max_conns: --database-max-conns). "compactor config print" shows the effective settings.

With --json the result is one JSON object on standard output, and an error one on standard error: {"error": {"code", "message"}}.

Exit codes:

    0    done
    1    internal error, or a server that could not be reached
    2    invalid usage, configuration or input
    3    the session, run or message does not exist
    4    refused: stale, in use, or not applicable
    5    a check of doctor failed
    130  interrupted`

// Help returns the text under the usage line.
func (*grammar) Help() string { return description }

// Main runs the command that args name (without the program) and returns the exit
// code. environ has the form of os.Environ; registry holds the strategies that
// policies and flags may name. Cancelling ctx stops the command gracefully.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string, registry *plan.Registry) int {
	return run(ctx, args, &Env{
		Stdin: os.Stdin, Out: term.Detect(stdout, environ), Err: term.Detect(stderr, environ),
		Environ: environ, Registry: registry, now: time.Now,
		asks: term.Interactive(os.Stdin),
	})
}

func run(ctx context.Context, args []string, e *Env) int {
	// go-redis also returns the errors that it would log.
	logging.Disable()
	var g grammar
	g.Settings = kong.Plugins{settingFlags()}
	g.CompactFile.registry = e.Registry
	helped := false
	parser, err := kong.New(&g,
		kong.Name("compactor"),
		kong.Vars{"formats": strings.Join(formats.Names(), ", "), "written": strings.Join(formats.WrittenNames(), ", "), "presets_of_tables": presetsOfTables()},
		kong.Writers(e.Out.W, e.Err.W),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.Exit(func(int) { helped = true }), // called after a help text only
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return e.fail(ctx, fmt.Errorf("command line: %w", err))
	}
	setHelp(parser.Model.Node, "help/", strings.NewReplacer("{{formats}}", formatHelp(false), "{{written}}", formatHelp(true), "{{presets}}", presetHelp(), "{{table_presets}}", tableHelp(),
		"{{strategies}}", strategyHelp(e.Registry), "{{sample}}", term.Count(sampleSize)))
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // as other programs have it
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if helped {
		return 0
	}
	e.JSON = g.JSON || err != nil && slices.Contains(args, "--json") // a flag behind the error is not parsed
	if err != nil {
		return e.fail(ctx, usageError(err))
	}
	e.file, e.database = g.ConfigFile, g.Database
	e.command = parsed.Command()
	e.flags, e.flagNames = g.values()
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := errors.Join(parsed.BindToProvider(e.Config), parsed.BindToProvider(e.Open)); err != nil {
		return e.fail(ctx, fmt.Errorf("command line: %w", err))
	}
	return e.fail(ctx, e.run(ctx, parsed))
}

// candidates matches the names that the parser proposes for a mistyped one.
var candidates = regexp.MustCompile(`one of ("[^"]+"(?:, "[^"]+")+)\?`)

// usageError adds the command whose help to consult to an error of the parser, which it
// shortens where that lists many names.
func usageError(err error) error {
	command := "compactor"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if selected := parse.Context.Selected(); selected != nil {
			command = selected.FullPath()
		}
	}
	const most = 3
	text, more := err.Error(), ""
	if m := candidates.FindStringSubmatch(text); m != nil {
		names := strings.Split(m[1], ", ")
		if n := len(names) - most; n > 0 {
			slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(len(a), len(b)) }) // they begin with what was given
			text = strings.Replace(text, m[0], fmt.Sprintf("one of %s, or one of %d more?", strings.Join(names[:most], ", "), n), 1)
		}
		if strings.Contains(m[1], `"--`) {
			more = ", and `compactor config example` for the settings, which all have flags"
		}
	}
	return &exitError{exitUsage, fmt.Errorf("%s (see `%s --help`%s)", text, command, more)}
}

// readDuration reads a duration as settings have it, also in days.
func readDuration(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	err := c.Scan.PopValueInto("duration", &text)
	if err != nil {
		return err
	}
	d, err := policy.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q: want a duration, such as 90m, 12h or 30d", text)
	}
	target.SetInt(int64(d))
	return nil
}
