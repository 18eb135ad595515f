//go:build !nodev

package cli

// devCommands are the commands that production never runs, with the embedded
// servers and sample data they bring. A binary built with the tag nodev leaves
// them out.
type devCommands struct {
	Eval  evalCmd  `cmd:"" group:"Files:" help:"Measure what compaction policies retain, on the sessions of files or stored ones."`
	Demo  demoCmd  `cmd:"" group:"Other:" help:"Show all of it on a backlog, with servers of its own."`
	Bench benchCmd `cmd:"" group:"Other:" help:"Measure the job path on real servers."`
}
