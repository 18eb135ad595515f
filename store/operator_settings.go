package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Setting is a database setting or statistic that affects the store.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	OK     bool   `json:"ok"`
	Advice string `json:"advice,omitempty"` // the remedy if it is not OK
}

// Settings checks the server's version, the settings that protect acknowledged messages in a
// crash, those of vacuum, whether enough pages of the log are all-visible for index-only scans,
// and whether jit slows down the queries of other programs.
func (s Admin) Settings(ctx context.Context) ([]Setting, error) {
	const query = `
		WITH log AS (SELECT * FROM pg_class c WHERE relkind = 'r' AND (oid = 'compactor.message_log'::regclass
			OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'compactor.message_log'::regclass)))
		SELECT 'server version', current_setting('server_version'), current_setting('server_version_num')::int >= 140000,
			'Postgres 14 or newer is needed (multiranges)'
		UNION ALL SELECT 'autovacuum', current_setting('autovacuum'), current_setting('autovacuum') = 'on',
			'turn it on: planning is an index-only scan on vacuumed pages'
		UNION ALL SELECT 'track_counts', current_setting('track_counts'), current_setting('track_counts') = 'on',
			'turn it on: autovacuum is blind without it'
		UNION ALL SELECT 'fsync', current_setting('fsync'), current_setting('fsync') = 'on',
			'off loses acknowledged messages in a crash'
		UNION ALL SELECT 'full_page_writes', current_setting('full_page_writes'), current_setting('full_page_writes') = 'on',
			'off can damage tables in a crash'
		UNION ALL SELECT 'synchronous_commit', current_setting('synchronous_commit'), current_setting('synchronous_commit') <> 'off',
			'off loses acknowledged messages in a crash'
		UNION ALL SELECT 'max_connections', current_setting('max_connections'),
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int > $1,
			format('each process of serve or worker wants up to %s (database.max_conns)', $1::int)
		UNION ALL SELECT 'message_log autovacuum_vacuum_insert_threshold', coalesce(min(o.option_value), 'default'), count(*) = count(o),
			'a migration sets it to 100000: it was reset since'
			FROM log c LEFT JOIN pg_options_to_table(c.reloptions) o ON o.option_name = 'autovacuum_vacuum_insert_threshold'
		UNION ALL SELECT 'message_log all-visible pages', sum(relallvisible) || ' of ' || sum(relpages),
			sum(relpages) < 1000 OR sum(relallvisible) > sum(relpages) * 0.5, 'VACUUM compactor.message_log'
			FROM log
		UNION ALL SELECT 'sessions dead rows', n_dead_tup || ' of ' || n_live_tup, n_dead_tup < 10000 OR n_dead_tup < n_live_tup,
			'VACUUM compactor.sessions; autovacuum does not keep up'
			FROM pg_stat_user_tables WHERE relid = 'compactor.sessions'::regclass`
	settings, err := queryRows(ctx, s.Store, "settings", pgx.RowToStructByPos[Setting], query, s.pool.Config().MaxConns)
	if err != nil {
		return nil, err
	}
	// This store's connections have it off.
	cfg := s.pool.Config().ConnConfig.Copy()
	delete(cfg.RuntimeParams, "jit")
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, wrap("settings", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	jit := Setting{Name: "jit", Advice: "set it off: plans over partitions look expensive, and compiling one takes longer than executing it"}
	err = conn.QueryRow(ctx, s.q(`SELECT current_setting('jit'), current_setting('jit') = 'off'
		OR NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'compactor.message_log'::regclass)`)).Scan(&jit.Value, &jit.OK)
	return append(settings, jit), wrap("settings", err)
}
