package storetest

import (
	"cmp"
	"flag"
	"os"
)

// Draw sets how many cases the random tests of a package draw, unless the flag -rapid.checks does: TEST_DRAWS, by default
// five. Each run of the tests draws others. TestMain of a package whose random tests use a database calls it.
func Draw() {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if asked {
		return
	}
	if err := flag.Set("rapid.checks", cmp.Or(os.Getenv("TEST_DRAWS"), "5")); err != nil {
		panic(err)
	}
}
