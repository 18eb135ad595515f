// Package cmd is the compactor program as a function, for binaries that bring
// strategies of their own: they keep all commands, the configuration, and the
// models, and policies and flags name the added strategies like built-in ones.
//
//	func main() {
//		cmd.Main(func(r *plan.Registry) error {
//			return r.Register("drop_greetings", "Excludes greetings.", newDropGreetings)
//		})
//	}
package cmd

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones for images that have none

	"github.com/sessionstore/compactor/cmd/internal/cli"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Main runs the command line of the process with the built-in strategies and
// those that register adds, and exits with the command's code. The first
// interrupt or SIGTERM ends the command in order, a second one at once.
func Main(register ...func(*plan.Registry) error) {
	registry := builtin.Registry()
	for _, add := range register {
		if err := add(registry); err != nil {
			fmt.Fprintln(os.Stderr, "compactor: register strategies:", err)
			os.Exit(1)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends ctx; from then on a signal has its usual effect again,
	// so a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	code := cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Environ(), registry)
	stop()
	os.Exit(code)
}
