#!/usr/bin/env bash
# Appends to a session, reads its view, asks again for what has not changed, and compacts it, which needs a key
# of scope operate in COMPACTOR_KEY; the rest needs append.
set -euo pipefail
url=${COMPACTOR_URL:-http://127.0.0.1:8321}/v1/sessions/support-4711
call() { curl --silent --show-error --fail-with-body -H "Authorization: Bearer ${COMPACTOR_KEY:-}" "$@"; }

messages='[{"id":"m1","role":"user","content":"Where is my order?"},{"id":"m2","role":"assistant","content":"On its way."}]'
for _ in 1 2; do # a batch that is sent again is appended once
  call "$url/messages?model=gpt-4o" -H 'Content-Type: application/json' -H 'Idempotency-Key: turn-1' -d "$messages"
done
headers=$(mktemp)
trap 'rm -f "$headers"' EXIT
printf 'prompt: '
call "$url/view" -D "$headers"
etag=$(sed -n 's/^[Ee][Tt]ag: *//p' "$headers" | tr -d '\r')
printf '\nunchanged: %s\n' "$(call "$url/view" -H "If-None-Match: $etag" -o /dev/null -w '%{http_code}')"
printf 'run: '
call "$url/compact?wait=10s" -H 'Content-Type: application/json' -d '{}'
