// Command go appends to a session over HTTP, reads its view, asks again for what has not changed,
// and compacts it, which needs a key of scope operate in COMPACTOR_KEY; the rest needs append.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

type message struct {
	ID      string `json:"id,omitempty"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

// call sends a request, with a body as a POST, and returns the status, the headers and the body of
// the answer.
func call(ctx context.Context, path string, body any, header, value string) (int, http.Header, []byte, error) {
	method, content := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return 0, nil, nil, err
		}
		method = http.MethodPost
	}
	session := cmp.Or(os.Getenv("COMPACTOR_URL"), "http://127.0.0.1:8321") + "/v1/sessions/support-4711"
	req, err := http.NewRequestWithContext(ctx, method, session+path, bytes.NewReader(content)) //nolint:gosec // the address is the caller's
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("COMPACTOR_KEY"))
	req.Header.Set("Content-Type", "application/json")
	if header != "" {
		req.Header.Set(header, value)
	}
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // as above
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: %s", resp.Status, raw)
	}
	return resp.StatusCode, resp.Header, raw, err
}

func run(ctx context.Context) error {
	messages := []message{{"m1", "user", "Where is my order?"}, {"m2", "assistant", "On its way."}}
	for range 2 { // a batch that is sent again is appended once
		_, _, appended, err := call(ctx, "/messages?model=gpt-4o", messages, "Idempotency-Key", "turn-1")
		if err != nil {
			return err
		}
		fmt.Printf("appended: %s\n", appended)
	}
	_, headers, raw, err := call(ctx, "/view", nil, "", "")
	if err != nil {
		return err
	}
	var view struct{ Messages []message }
	if err := json.Unmarshal(raw, &view); err != nil {
		return err
	}
	fmt.Println("prompt:", view.Messages)
	status, _, _, err := call(ctx, "/view", nil, "If-None-Match", headers.Get("ETag"))
	if err != nil {
		return err
	}
	fmt.Println("unchanged:", status)
	_, _, done, err := call(ctx, "/compact?wait=10s", struct{}{}, "", "")
	fmt.Printf("run: %s\n", done)
	return err
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
