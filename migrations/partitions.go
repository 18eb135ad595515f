package migrations

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// MaxPartitions is the largest number of partitions of the log.
const MaxPartitions = 1000

// makePartitioned replaces the tables that grow with every message, which must be empty.
// Everything that depends on them is dropped, and made again with the functions.
const makePartitioned = `
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY '{message_log,message_body}'::text[] LOOP
        EXECUTE format('CREATE TABLE @schema@.parted (LIKE @schema@.%I INCLUDING ALL) PARTITION BY HASH (sid)', t);
        FOR i IN 0..@partitions@ - 1 LOOP
            EXECUTE format('CREATE TABLE @schema@.%I PARTITION OF @schema@.parted
                FOR VALUES WITH (MODULUS @partitions@, REMAINDER %s) WITH (%s)', t || '_p' || i, i, (SELECT array_to_string(c.reloptions || array(
                    SELECT 'toast.' || o FROM pg_class x, unnest(x.reloptions) o WHERE x.oid = c.reltoastrelid), ', ') FROM pg_class c WHERE c.oid = ('@schema@.' || t)::regclass));
        END LOOP;
        EXECUTE format('DROP TABLE @schema@.%I CASCADE', t);
        EXECUTE format('ALTER TABLE @schema@.parted RENAME TO %I', t);
        EXECUTE format('ALTER TABLE @schema@.%I RENAME CONSTRAINT parted_pkey TO %I', t, t || '_pkey');
    END LOOP;
    ALTER INDEX @schema@.parted_sid_id_idx RENAME TO message_log_id;
    ALTER TABLE @schema@.message_log ADD FOREIGN KEY (sid) REFERENCES @schema@.sessions;
    ALTER TABLE @schema@.exclusions ADD FOREIGN KEY (sid, summary_seq) REFERENCES @schema@.message_log;
    DELETE FROM @schema@.installed_functions;
END $$`

// partition makes the log of an installation without sessions partitioned. It is called
// after the migrations, which know one table, and before the functions.
func partition(ctx context.Context, conn *pgx.Conn, schema string, partitions int) error {
	if partitions == 0 {
		return nil
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE "+schema+".sessions IN SHARE MODE"); err != nil {
			return err
		}
		var have int
		var used bool
		const query = `SELECT (SELECT count(*) FROM pg_inherits WHERE inhparent = '@schema@.message_log'::regclass),
			EXISTS (SELECT FROM @schema@.sessions)`
		err := tx.QueryRow(ctx, inSchema(query, schema)).Scan(&have, &used)
		if err != nil || have == partitions {
			return err
		}
		if have > 0 || used {
			there := "one table"
			if have > 0 {
				there = fmt.Sprintf("%d partitions", have)
			}
			return fmt.Errorf("%d partitions: the log of schema %s is %s, and only that of a new installation, in one table, can be partitioned",
				partitions, schema, there)
		}
		_, err = tx.Exec(ctx, inSchema(strings.ReplaceAll(makePartitioned, "@partitions@", strconv.Itoa(partitions)), schema))
		return err
	})
}

func inSchema(sql, schema string) string { return strings.ReplaceAll(sql, "@schema@", schema) }
