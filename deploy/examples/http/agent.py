"""Appends to a session, reads its view, asks again for what has not changed, and compacts it.

The last needs a key of scope operate in COMPACTOR_KEY, the rest append."""
import json, os, urllib.error, urllib.request

session = os.environ.get("COMPACTOR_URL", "http://127.0.0.1:8321") + "/v1/sessions/support-4711"


def call(path, body=None, **headers):
    """Returns status, headers and body of a request; a body makes it a POST."""
    request = urllib.request.Request(session + path, None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + os.environ.get("COMPACTOR_KEY", ""))
    request.add_header("Content-Type", "application/json")
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 304:
            return error.code, error.headers, None
        raise RuntimeError(json.load(error)["detail"]) from None


messages = [{"id": "m1", "role": "user", "content": "Where is my order?"}, {"id": "m2", "role": "assistant", "content": "On its way."}]
for _ in range(2):  # a batch that is sent again is appended once
    print("appended:", call("/messages?model=gpt-4o", messages, Idempotency_Key="turn-1")[2])
_, headers, view = call("/view")
print("prompt:", view["messages"])
print("unchanged:", call("/view", If_None_Match=headers["ETag"])[0])
print("run:", call("/compact?wait=10s", {})[2])
