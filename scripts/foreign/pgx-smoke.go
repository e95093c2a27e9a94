// What an application does with pgx v4, each as one check: `passed` or `failed`, a tab, its name, a tab, the reason.
// The address is in PGHOST and so on, the authority that signed the server's certificate in PGSSLROOTCERT.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

// It does not read PGOPTIONS by itself.
var target = fmt.Sprintf("sslmode=verify-full options='%s'", os.Getenv("PGOPTIONS"))

type check struct {
	name string
	work func(ctx context.Context, conn *pgx.Conn) error
}

var checks = []check{
	{"TLS with a verified name", verifiedName},
	{"a server of an unknown authority is refused", unknownAuthority},
	{"a wrong password is refused", wrongPassword},
	{"prepared statement under a name", namedStatement},
	{"statements that the driver keeps by itself", keptStatements},
	{"simple protocol", simpleProtocol},
	{"types there and back", types},
	{"batch", batch},
	{"batch with a fault in the middle", faultyBatch},
	{"COPY in and out", copyBoth},
	{"rollback and savepoint", savepoint},
	{"row of 8 MB", largeRow},
	{"LISTEN", listen},
	{"cancel", cancel},
	{"schema change under a kept statement", schemaChange},
	{"DEALLOCATE of a prepared statement", deallocate},
	{"pool of eight", poolOfEight},
}

func main() {
	for _, each := range checks {
		fault := attempt(each)
		for tries := 1; tries < 3 && fault != nil; tries++ {
			fault = attempt(each)
		}
		if fault == nil {
			fmt.Printf("passed\t%s\n", each.name)
		} else {
			fmt.Printf("failed\t%s\t%s\n", each.name, strings.ReplaceAll(fault.Error(), "\n", " "))
		}
	}
}

func attempt(each check) error {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	conn, err := pgx.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	return each.work(ctx, conn)
}

func expect(isTrue bool, format string, values ...interface{}) error {
	if isTrue {
		return nil
	}
	return fmt.Errorf(format, values...)
}

func hasCode(err error, code string) error {
	var fault *pgconn.PgError
	return expect(errors.As(err, &fault) && fault.Code == code, "%v is not %s", err, code)
}

func verifiedName(ctx context.Context, conn *pgx.Conn) error {
	socket, isTLS := conn.PgConn().Conn().(*tls.Conn)
	if !isTLS {
		return errors.New("no TLS")
	}
	return expect(len(socket.ConnectionState().VerifiedChains) > 0, "the certificate was not verified")
}

func unknownAuthority(ctx context.Context, conn *pgx.Conn) error {
	config, err := pgx.ParseConfig(target)
	if err != nil {
		return err
	}
	config.TLSConfig.RootCAs = x509.NewCertPool()
	other, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		other.Close(ctx)
		return errors.New("it connected")
	}
	var unknown x509.UnknownAuthorityError
	return expect(errors.As(err, &unknown), "%v", err)
}

func wrongPassword(ctx context.Context, conn *pgx.Conn) error {
	other, err := pgx.Connect(ctx, target+" password=wrong")
	if err == nil {
		other.Close(ctx)
		return errors.New("it connected")
	}
	return hasCode(err, "28P01")
}

func namedStatement(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Prepare(ctx, "twice", "select $1::int * 2"); err != nil {
		return err
	}
	for number := 1; number <= 5; number++ {
		var double int
		if err := conn.QueryRow(ctx, "twice", number).Scan(&double); err != nil {
			return err
		}
		if double != 2*number {
			return fmt.Errorf("%d for %d", double, number)
		}
	}
	return conn.Deallocate(ctx, "twice")
}

func keptStatements(ctx context.Context, conn *pgx.Conn) error {
	for round := 0; round < 3; round++ {
		// More than the 512 that it keeps.
		for number := 0; number < 600; number++ {
			var got int
			query := fmt.Sprintf("select $1::int + %d", number)
			if err := conn.QueryRow(ctx, query, 1).Scan(&got); err != nil {
				return err
			}
			if got != number+1 {
				return fmt.Errorf("%d for %d", got, number)
			}
		}
	}
	return nil
}

func simpleProtocol(ctx context.Context, conn *pgx.Conn) error {
	var text string
	err := conn.QueryRow(ctx, "select $1 || '!'", pgx.QuerySimpleProtocol(true), "it's").Scan(&text)
	if err != nil {
		return err
	}
	return expect(text == "it's!", "%s", text)
}

func types(ctx context.Context, conn *pgx.Conn) error {
	at := time.Date(2026, 11, 16, 1, 2, 3, 4000, time.UTC)
	var gotAt time.Time
	var numbers []int32
	var data []byte
	var document map[string]interface{}
	var nothing *string
	err := conn.QueryRow(ctx, "select $1::timestamptz, $2::int[], $3::bytea, $4::jsonb, $5::text",
		at, []int32{1, 2, 3}, []byte{0, 255}, map[string]interface{}{"a": "ü"}, nil,
	).Scan(&gotAt, &numbers, &data, &document, &nothing)
	if err != nil {
		return err
	}
	isSame := gotAt.Equal(at) && fmt.Sprint(numbers) == "[1 2 3]" && bytes.Equal(data, []byte{0, 255})
	return expect(isSame && document["a"] == "ü" && nothing == nil, "%v %v %v %v", gotAt, numbers, data, document)
}

func batch(ctx context.Context, conn *pgx.Conn) error {
	queue := &pgx.Batch{}
	for number := 0; number < 100; number++ {
		queue.Queue("select $1::int", number)
	}
	results := conn.SendBatch(ctx, queue)
	defer results.Close()
	for number := 0; number < 100; number++ {
		var got int
		if err := results.QueryRow().Scan(&got); err != nil {
			return err
		}
		if got != number {
			return fmt.Errorf("%d for %d", got, number)
		}
	}
	return results.Close()
}

func faultyBatch(ctx context.Context, conn *pgx.Conn) error {
	queue := &pgx.Batch{}
	for _, divisor := range []int{1, 0, 1} {
		queue.Queue("select 1 / $1::int", divisor)
	}
	results := conn.SendBatch(ctx, queue)
	var got int
	if err := results.QueryRow().Scan(&got); err != nil {
		return err
	}
	if err := hasCode(results.QueryRow().Scan(&got), "22012"); err != nil {
		return err
	}
	results.Close()
	return conn.QueryRow(ctx, "select 1").Scan(&got)
}

func copyBoth(ctx context.Context, conn *pgx.Conn) error {
	if err := makeTable(ctx, conn, "pgx_copy", "a int, b text"); err != nil {
		return err
	}
	rows := [][]interface{}{}
	for number := 0; number < 10000; number++ {
		rows = append(rows, []interface{}{int32(number), "text"})
	}
	count, err := conn.CopyFrom(ctx, pgx.Identifier{"pgx_copy"}, []string{"a", "b"}, pgx.CopyFromRows(rows))
	if err != nil || count != 10000 {
		return fmt.Errorf("%d rows: %w", count, err)
	}
	var out bytes.Buffer
	if _, err := conn.PgConn().CopyTo(ctx, &out, "copy pgx_copy to stdout"); err != nil {
		return err
	}
	return expect(strings.Count(out.String(), "\n") == 10000, "%d bytes", out.Len())
}

func makeTable(ctx context.Context, conn *pgx.Conn, name string, columns string) error {
	if _, err := conn.Exec(ctx, "drop table if exists "+name); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("create table %s (%s)", name, columns))
	return err
}

func savepoint(ctx context.Context, conn *pgx.Conn) error {
	if err := makeTable(ctx, conn, "pgx_savepoint", "a int"); err != nil {
		return err
	}
	outer, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer outer.Rollback(ctx)
	insert := "insert into pgx_savepoint values ($1)"
	if _, err := outer.Exec(ctx, insert, 1); err != nil {
		return err
	}
	inner, err := outer.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := inner.Exec(ctx, insert, 2); err != nil {
		return err
	}
	_, fault := inner.Exec(ctx, "select 1 / 0")
	if err := hasCode(fault, "22012"); err != nil {
		return err
	}
	if err := inner.Rollback(ctx); err != nil {
		return err
	}
	if err := outer.Commit(ctx); err != nil {
		return err
	}
	var count int
	if err := conn.QueryRow(ctx, "select count(*) from pgx_savepoint").Scan(&count); err != nil {
		return err
	}
	return expect(count == 1, "%d rows", count)
}

func largeRow(ctx context.Context, conn *pgx.Conn) error {
	text := strings.Repeat("0123456789abcdef", 1<<19)
	var got string
	if err := conn.QueryRow(ctx, "select $1::text", text).Scan(&got); err != nil {
		return err
	}
	return expect(got == text, "%d bytes", len(got))
}

func listen(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "listen pgx_channel"); err != nil {
		return err
	}
	other, err := pgx.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer other.Close(ctx)
	if _, err := other.Exec(ctx, "notify pgx_channel, 'hello'"); err != nil {
		return err
	}
	soon, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	notification, err := conn.WaitForNotification(soon)
	if err != nil {
		return err
	}
	return expect(notification.Payload == "hello", "%s", notification.Payload)
}

func cancel(ctx context.Context, conn *pgx.Conn) error {
	asked := make(chan error, 1)
	time.AfterFunc(500*time.Millisecond, func() { asked <- conn.PgConn().CancelRequest(ctx) })
	_, err := conn.Exec(ctx, "select pg_sleep(10)")
	if err := hasCode(err, "57014"); err != nil {
		return err
	}
	if err := <-asked; err != nil {
		return err
	}
	var got int
	return conn.QueryRow(ctx, "select 1").Scan(&got)
}

// The driver has the columns of before: it may fail once, and must then prepare again.
func schemaChange(ctx context.Context, conn *pgx.Conn) error {
	if err := makeTable(ctx, conn, "pgx_schema", "a int"); err != nil {
		return err
	}
	query := "select * from pgx_schema where a > $1"
	if _, err := conn.Exec(ctx, query, 0); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "alter table pgx_schema add column b int default 7"); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "insert into pgx_schema values (1)"); err != nil {
		return err
	}
	var a, b int
	first := conn.QueryRow(ctx, query, 0).Scan(&a, &b)
	if first == nil {
		return nil
	}
	if err := conn.QueryRow(ctx, query, 0).Scan(&a, &b); err != nil {
		return fmt.Errorf("%v, and then %w", first, err)
	}
	return expect(b == 7, "%d", b)
}

func deallocate(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Prepare(ctx, "gone", "select 1"); err != nil {
		return err
	}
	if _, err := conn.PgConn().Exec(ctx, `deallocate "gone"`).ReadAll(); err != nil {
		return err
	}
	var got int
	return hasCode(conn.QueryRow(ctx, "gone").Scan(&got), "26000")
}

func poolOfEight(ctx context.Context, conn *pgx.Conn) error {
	config, err := pgxpool.ParseConfig(target)
	if err != nil {
		return err
	}
	config.MaxConns = 8
	pool, err := pgxpool.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	var group sync.WaitGroup
	faults := make(chan error, 400)
	for worker := 0; worker < 20; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			for number := 0; number < 20; number++ {
				var got int
				if err := pool.QueryRow(ctx, "select $1::int", worker*number).Scan(&got); err != nil {
					faults <- err
				} else if got != worker*number {
					faults <- fmt.Errorf("%d for %d", got, worker*number)
				}
			}
		}(worker)
	}
	group.Wait()
	close(faults)
	return <-faults
}
