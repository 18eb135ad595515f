import json, os, psycopg
session = "support-4711"
messages = [{"id": "m1", "role": "user", "content": "Where is my order?"}, {"id": "m2", "role": "assistant", "content": "On its way."}]
with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
    db.execute("SELECT compactor.append(%s, %s, %s, %s)", ("default", session, json.dumps(messages), "gpt-4o"))
    prompt = [row[0] for row in db.execute("SELECT message FROM compactor.view(%s, %s)", ("default", session))]
    print("prompt:", prompt)
    run = db.execute("SELECT compactor.request_compaction(%s, %s)", ("default", session)).fetchone()[0]
    print("run:", run)
