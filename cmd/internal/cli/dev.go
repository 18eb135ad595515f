//go:build !nodev

package cli

// devCommands holds the commands that production never runs, with their embedded
// servers and sample data. The build tag nodev leaves them out.
type devCommands struct {
	Eval  evalCmd  `cmd:"" group:"Files:" help:"Measure what compaction policies retain, on the sessions of files or stored ones."`
	Demo  demoCmd  `cmd:"" group:"Other:" help:"Demonstrate compaction on a generated backlog, with embedded servers."`
	Dev   devCmd   `cmd:"" group:"Other:" help:"Run all of it on this machine, with embedded servers and the dashboard, until Ctrl-C."`
	Bench benchCmd `cmd:"" group:"Other:" help:"Measure the job path on real servers."`
}
