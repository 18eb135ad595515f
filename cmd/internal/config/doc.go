// Package config turns one YAML file, the environment and command-line flags into
// plain structs, and is the only reader of the environment. A later source wins:
// defaults, file, environment, flags. The origin of every value is recorded.
//
// Decoding is strict: unknown keys, values of the wrong type and values out of range are
// errors that name the file and line, the variable or the flag. All of them are reported
// together. Connection strings never show their password in
// errors, logs or output.
//
// The packages that use the settings own their defaults and bounds. This package opens no
// connection.
package config
