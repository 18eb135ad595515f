package config

import (
	"net"
	"strconv"
	"time"

	"github.com/sessionstore/compactor/strategies/policy"
)

// API holds the settings of the HTTP API.
type API struct {
	// Listen is the address of the listener, with a host; APIOff for none.
	Listen string `yaml:"listen"`
	// TLSCert and TLSKey are the files of a certificate chain and its key; without them, a proxy
	// has to encrypt what leaves the machine.
	TLSCert string `yaml:"tls_cert"`
	TLSKey  string `yaml:"tls_key"`
	// MaxBody bounds the body of a request, decompressed.
	MaxBody policy.Bytes `yaml:"max_body"`
	// MaxBatch bounds the messages of an append.
	MaxBatch int `yaml:"max_batch"`
	// MaxPage bounds the rows of a page.
	MaxPage int `yaml:"max_page"`
	// RequestsPerSecond bounds the requests with one key on this server; short bursts of as many
	// are accepted.
	RequestsPerSecond float64 `yaml:"requests_per_second"`
	// MaxStreams bounds the streams of events that are open at a time, of all keys together.
	MaxStreams int `yaml:"max_streams"`
	// MaxCompactions bounds the compactions without a session at a time, of all keys together. Each
	// may hold MaxBody several times and wait for models.
	MaxCompactions int `yaml:"max_compactions"`
	// ReadTimeout bounds the time for reading a request, WriteTimeout that for its answer. The
	// latter is longer than a wait for a run.
	ReadTimeout  time.Duration `yaml:"read_timeout"`
	WriteTimeout time.Duration `yaml:"write_timeout"`
	IdleTimeout  time.Duration `yaml:"idle_timeout"`
	// Dashboard serves pages for people, too, at /ui/.
	Dashboard bool `yaml:"dashboard"`
	// HideTexts keeps texts of messages and summaries off its pages until they are asked for.
	HideTexts bool `yaml:"hide_texts"`
	// SignOut ends the sign-in of a browser after this time without a request.
	SignOut time.Duration `yaml:"sign_out"`
}

// APIOff is the value of API.Listen without a listener.
const APIOff = "off"

// MaxWait is the longest time that a request waits for a run.
const MaxWait = 30 * time.Second

func defaultAPI() API {
	return API{
		Listen: "127.0.0.1:8321", MaxBody: 32e6, MaxBatch: 20_000, MaxPage: 500, RequestsPerSecond: 5000, MaxStreams: 500,
		MaxCompactions: 8, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
		Dashboard: true, SignOut: 30 * time.Minute,
	}
}

// Validate reports every setting that is out of range, as an errors.Join of *policy.FieldError
// values.
func (c API) Validate() error {
	var fs policy.FieldErrors
	fs.Check(c.Listen == APIOff || isAddress(c.Listen), "listen", strconv.Quote(c.Listen),
		"host:port, such as 127.0.0.1:8321 (0.0.0.0:8321 for all interfaces, with keys), or %s", APIOff)
	fs.Check((c.TLSCert == "") == (c.TLSKey == ""), "tls_key", strconv.Quote(c.TLSKey), "a file beside tls_cert, or neither")
	policy.CheckRange(&fs, "max_body", c.MaxBody, 1<<10, 1<<30)
	policy.CheckRange(&fs, "max_batch", c.MaxBatch, 1, 1_000_000)
	policy.CheckRange(&fs, "max_page", c.MaxPage, 10, 5000)
	policy.CheckRange(&fs, "requests_per_second", c.RequestsPerSecond, 0.1, 1e6)
	policy.CheckRange(&fs, "max_streams", c.MaxStreams, 0, 100_000)
	policy.CheckRange(&fs, "read_timeout", c.ReadTimeout, MaxWait, time.Hour) // it ends requests that wait, too
	policy.CheckRange(&fs, "max_compactions", c.MaxCompactions, 0, 10_000)
	policy.CheckRange(&fs, "write_timeout", c.WriteTimeout, 2*MaxWait, time.Hour)
	policy.CheckRange(&fs, "idle_timeout", c.IdleTimeout, time.Second, time.Hour)
	policy.CheckRange(&fs, "sign_out", c.SignOut, time.Minute, 30*24*time.Hour)
	return fs.Join()
}

// isAddress reports whether a text is a host and the number of a port.
func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n < 1<<16
}
