// Package builtin holds the built-in strategies, one file each, and their registry.
//
// Registry returns a registry of them all, which a program may extend. Each strategy has a
// line in the table of builtin.go: its name, a description and a constructor that reads its
// parameters. Package plan defines strategies, package pipeline runs
// them safely.
package builtin
