// Package config turns one YAML file, the environment and command-line flags into
// plain structs, and is the only reader of the environment. A later source wins:
// defaults, file, environment, flags. Every value remembers where it comes from.
//
// Reading is strict: an unknown key, a value of the wrong type and a value out of
// range are errors that name their file and line, variable or flag, and all of
// them are reported at once. Connection strings never show their password in
// errors, logs or output.
//
// It knows what settings mean only as far as it takes to refuse wrong ones; it
// opens no connection.
package config
