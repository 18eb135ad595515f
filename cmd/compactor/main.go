// Compactor keeps stored LLM conversations within the context window of their model.
package main

import "github.com/sessionstore/compactor/cmd"

func main() { cmd.Main() }
