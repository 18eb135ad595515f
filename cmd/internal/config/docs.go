package config

// docs says what each setting does, in the words of the example file.
func docs() map[string]string {
	return map[string]string{ //nolint:gosec // what an address looks like, nobody's password
		"tenant": "Tenant that commands work on.",

		"database.url":       "Postgres, as postgres://user:password@host:5432/database or key=value pairs.",
		"database.schema":    "Schema that holds all tables and functions, beside an application's own.",
		"database.max_conns": "Connections at most; 0 is worker.concurrency and four more, at most 20.",

		"redis.url": "Redis, as redis://:password@host:6379/0, rediss://, redis-socket:// or redis-sentinel://.",

		"policy.preset": "A policy by name, for what is not given here: chat, research, strict or tool_heavy\n" +
			"(`compactor compact-file --help` describes them); \"\" is the values of this file.",
		"policy.window_tokens": "Context window of every model, in tokens; 0 takes it from the built-in table\n" +
			"(128,000 for a model it does not know).",
		"policy.windows": "Context window by model or beginning of a model's name, before everything else:\n" +
			"{gpt-4o: 128000, my-model: 32000}. The longest match wins.",
		"policy.start":  "Fraction of the window above which a session is compacted.",
		"policy.target": "Fraction of the window it is compacted to; less than start.",
		"policy.start_tokens": "Both as absolute numbers of tokens instead; given together or not at all (0).\n" +
			"For a model whose window is smaller they are scaled into it.",
		"policy.target_tokens": "See start_tokens.",
		"policy.pipeline": "Strategies in order; it stops as soon as the target is met. A truncation without\n" +
			"metric, max_n and compact_to cuts to the target in tokens.",
		"policy.fallback": "Drop the oldest groups when the pipeline ends above the target.",
		"policy.min_gain_tokens": "A run that would save less is discarded: rewriting a view costs the provider's\n" +
			"prompt cache, so a handful of tokens is not worth it.",
		"policy.estimate_margin": "Added, as a fraction, to token counts that are estimates.",
		"policy.preserve_system": "Keep every system message.",
		"policy.pin_tools": "Tools whose calls stay in the view with their results, verbatim, such as [load_policy, read_skill].\n" +
			"Every message that makes calls is read for that.",
		"policy.summary.on_failure": "Where the last step of the pipeline got no summary: keep the history as it is, extractive (one that\n" +
			"no model writes), truncate (the oldest groups go), marker (a note in its place).",
		"policy.summary.size.share":        "How long a summary may be, as a fraction of the tokens that it covers …",
		"policy.summary.size.min_tokens":   "… at least this …",
		"policy.summary.size.max_tokens":   "… at most this …",
		"policy.summary.size.window_share": "… and at most this fraction of the window.",
		"policy.summary.size.slack":        "How much longer than that an answer may be before the model is stopped, as a factor.",
		"policy.summary.references": "Room for references beside a model's prose, as a fraction of that: identifiers with their labels,\n" +
			"made without a model.",
		"policy.summary.focus":       "A topic that summaries favour.",
		"policy.summary.instruction": "What summaries should be like, beside what the prompt says.",
		"policy.summary.pre_trim": "What is shortened before a model reads it, in order, as far as needed. Nothing that is stored changes,\n" +
			"and the prompt says that something was cut.",
		"policy.summary.max_parts":         "In how many prompts one summary may be made; the oldest messages beyond them are not read.",
		"policy.summary.max_cost":          "What one summary may cost before no further call is made, in the unit of the prices; 0 is no limit.",
		"policy.summary.cooldown":          "Automatic runs leave a session alone for this long after a summary failed that may work later …",
		"policy.summary.cooldown_no_model": "… and this long where there is no model: a wrong key, no money left.",

		"llm.models": "Models that write summaries: the first is asked first, each other one when those before it fail.\n" +
			"Without one, summaries are extracts. A key is in the variable key_env or in the file key_file:\n" +
			"  - {name: gpt-5-mini, base_url: \"https://api.openai.com/v1\", key_env: OPENAI_API_KEY, window_tokens: 400000,\n" +
			"     max_output_tokens: 128000, fixed_temperature: true, reasoning_effort: low, reasoning_tokens: 4000,\n" +
			"     price_per_million: {input: 0.25, cached: 0.025, output: 2.0}, requests_per_minute: 500, tokens_per_minute: 200000}\n" +
			"  - {name: llama3.1, base_url: \"http://localhost:11434/v1\", window_tokens: 32000, max_tokens_field: max_tokens}",
		"llm.deadline.min":         "An attempt gets at least this …",
		"llm.deadline.per_token":   "… this for each token of its input …",
		"llm.deadline.max":         "… and at most this.",
		"llm.deadline.connect":     "Bound on reaching a server.",
		"llm.budget.attempts":      "Requests for one answer at most, over all models.",
		"llm.budget.tokens":        "Tokens read and written for one answer at most; 0 is four times what one attempt may take.",
		"llm.budget.cost":          "What one answer may cost at most, in the unit of the prices; 0 is no limit.",
		"llm.budget.time":          "Bound on one answer, waiting included.",
		"llm.retry.base":           "Bound of the first wait before another attempt; each further one is twice as long …",
		"llm.retry.max":            "… up to this.",
		"llm.retry.wait":           "How long a server's Retry-After, or the limits per minute, are waited for before the next model is asked.",
		"llm.breaker.failures":     "Failures in a row after which a server counts as broken …",
		"llm.breaker.open":         "… and is not asked for this long.",
		"llm.cooldown.transient":   "A model that failed is not asked by any worker for this long; negative for not at all.",
		"llm.cooldown.no_provider": "The same for a wrong key and a quota that is used up.",

		"policy.cron": "Start of the nightly sweep: five fields, a descriptor such as @daily, or @every 1h\n" +
			"(at least 1m, aligned to multiples).",
		"policy.timezone":  "Zone of cron, as an IANA name. In zones with summer time a start may be skipped or come twice.",
		"policy.debounce":  "An event run starts once a session has been quiet for this long …",
		"policy.max_delay": "… and this long after its first write at the latest.",
		"policy.cooldown":  "Automatic runs leave a session alone for this long after one that gained too little.",

		"worker.concurrency":    "Sessions compacted at a time.",
		"worker.lease":          "A run belongs to its worker for this long without a sign of life.",
		"worker.heartbeat":      "How often a worker gives one; at most half a lease.",
		"worker.job_timeout":    "Bound on one delivery of one run.",
		"worker.drain_timeout":  "Running jobs may take this long to end on shutdown.",
		"worker.check_interval": "How often an idle worker looks for tasks: start latency against load on Redis.",

		"scheduler.relay_interval":     "How often newly written sessions are looked for.",
		"scheduler.page_size":          "Sessions handled at a time.",
		"scheduler.redeliver_after":    "A queued run that nobody took is delivered again after this long; at least a lease.",
		"scheduler.leader_ttl":         "A scheduler leads for this long without a sign of life.",
		"scheduler.reconcile_interval": "How often lost work is looked for in Postgres.",

		"log.level":  "debug, info, warn or error.",
		"log.format": "auto (text on a terminal, JSON elsewhere), json or text.",
	}
}
