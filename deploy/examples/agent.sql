SELECT compactor.append('default', 'support-4711', '[
  {"id": "m1", "role": "user", "content": "Where is my order?"},
  {"id": "m2", "role": "assistant", "content": "On its way."}]', 'gpt-4o');
SELECT message FROM compactor.view('default', 'support-4711');      -- the prompt, a row a message
SELECT compactor.report_usage('default', 'support-4711', 1234);     -- as the provider counted it
SELECT seq, role, excluded, exclude_reason, excluded_by             -- all, and why one left
FROM compactor.messages WHERE tenant = 'default' AND session = 'support-4711';
-- A history that the application has compacted itself, in place of the view:
SELECT compactor.replace_view('default', 'support-4711', revision,
  '[{"role": "user", "content": "Earlier: where is my order?"}]' || (messages::jsonb - 0), 'agent', seen)
FROM compactor.view_with_revision('default', 'support-4711');
SELECT compactor.request_compaction('default', 'support-4711');     -- a run now; others come by themselves
