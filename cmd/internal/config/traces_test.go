package config

import "testing"

func TestWhereSpansAreSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env         []string
		url, unused string
	}{
		"by default nowhere":            {},
		"a collector of all programs":   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"}, "http://c:4318/v1/traces", ""},
		"one below a path":              {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c/otel/"}, "https://c/otel/v1/traces", ""},
		"one for traces":                {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:1/x", "OTEL_EXPORTER_OTLP_ENDPOINT=http://d:4318"}, "http://c:1/x", ""},
		"one of our own":                {[]string{"COMPACTOR_TRACES_ENDPOINT=http://c:4318", "OTEL_EXPORTER_OTLP_ENDPOINT=http://d:4318"}, "http://c:4318/v1/traces", ""},
		"our own is off":                {[]string{"COMPACTOR_TRACES_ENDPOINT=off", "OTEL_EXPORTER_OTLP_ENDPOINT=http://d:4318"}, "", ""},
		"the SDK is off":                {[]string{"OTEL_SDK_DISABLED=TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT=http://d:4318"}, "", ""},
		"there is no exporter":          {[]string{"OTEL_TRACES_EXPORTER=none", "COMPACTOR_TRACES_ENDPOINT=http://d:4318"}, "", ""},
		"one that speaks gRPC":          {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://d:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT is not used: spans are sent as http/protobuf, and the variables ask for another protocol; set traces.endpoint"},
		"one that is no URL":            {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=d:4317"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT is not used: want the URL of a collector of OTLP over HTTP, such as http://127.0.0.1:4318, or off"},
		"one with credentials, unshown": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://u:hush@d"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT is not used: want a URL without credentials: they belong into OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		got, err := Load(LoadOptions{Environ: c.env, Dir: t.TempDir()})
		if err != nil || got.Traces.URL() != c.url || got.Traces.Unused != c.unused {
			t.Errorf("%s: %q, %q, %v; want %q, %q", name, got.Traces.URL(), got.Traces.Unused, err, c.url, c.unused)
		}
	}
}

func TestAWrongEndpointIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"c:4318":           "flag --traces-endpoint: traces.endpoint: the value: want the URL of a collector of OTLP over HTTP, such as http://127.0.0.1:4318, or off",
		"http://u:hush@c":  "flag --traces-endpoint: traces.endpoint: the value: want a URL without credentials: they belong into OTEL_EXPORTER_OTLP_HEADERS",
		"http://c/?k=hush": "flag --traces-endpoint: traces.endpoint: the value: want a URL without credentials: they belong into OTEL_EXPORTER_OTLP_HEADERS",
	} {
		if _, err := Load(LoadOptions{Flags: map[string]string{"traces.endpoint": value}, Dir: t.TempDir()}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}
