// Compactor keeps stored LLM conversations within the context window without
// losing a word of them.
package main

import "github.com/sessionstore/compactor/cmd"

func main() { cmd.Main() }
