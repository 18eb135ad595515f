//go:build nodev

package cli

// devCommands is empty: this binary was built without them.
type devCommands struct{}
