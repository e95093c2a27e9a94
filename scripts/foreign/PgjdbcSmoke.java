import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.PGStatement;
import org.postgresql.copy.CopyManager;

/**
 * What an application does with pgjdbc, each as one check: `passed` or `failed`, a tab, its name, a tab, the reason.
 * The address is in PGHOST and so on, the authority that signed the server's certificate in PGSSLROOTCERT.
 */
public class PgjdbcSmoke {
  interface Check {
    void run(Connection connection) throws Exception;
  }

  static final Map<String, Check> checks = new LinkedHashMap<>();

  static {
    checks.put("TLS with a verified name", PgjdbcSmoke::verifiedName);
    checks.put("a server of an unknown authority is refused", PgjdbcSmoke::unknownAuthority);
    checks.put("a wrong password is refused", PgjdbcSmoke::wrongPassword);
    checks.put("statement prepared on the server", PgjdbcSmoke::serverPrepared);
    checks.put("statements of more than the cache holds", PgjdbcSmoke::keptStatements);
    checks.put("simple protocol", PgjdbcSmoke::simpleProtocol);
    checks.put("types there and back", PgjdbcSmoke::types);
    checks.put("batch", PgjdbcSmoke::batch);
    checks.put("batch with a fault in the middle", PgjdbcSmoke::faultyBatch);
    checks.put("rows fetched by a cursor", PgjdbcSmoke::cursor);
    checks.put("generated keys", PgjdbcSmoke::generatedKeys);
    checks.put("COPY in and out", PgjdbcSmoke::copyBoth);
    checks.put("rollback and savepoint", PgjdbcSmoke::savepoint);
    checks.put("row of 8 MB", PgjdbcSmoke::largeRow);
    checks.put("LISTEN", PgjdbcSmoke::listen);
    checks.put("cancel", PgjdbcSmoke::cancel);
    checks.put("query timeout", PgjdbcSmoke::queryTimeout);
    checks.put("schema change under a prepared statement", PgjdbcSmoke::schemaChange);
    checks.put("metadata", PgjdbcSmoke::metadata);
  }

  public static void main(String[] args) {
    checks.forEach((name, check) -> {
      Throwable fault = attempt(check);
      for (int tries = 1; tries < 3 && fault != null; tries++) fault = attempt(check);
      if (fault == null) System.out.printf("passed\t%s%n", name);
      else System.out.printf("failed\t%s\t%s%n", name, String.valueOf(fault.getMessage()).replace('\n', ' '));
    });
    System.exit(0);
  }

  static Throwable attempt(Check check) {
    try (Connection connection = connect(new Properties())) {
      check.run(connection);
      return null;
    } catch (Exception fault) {
      return fault;
    }
  }

  static Connection connect(Properties others) throws SQLException {
    Properties properties = new Properties();
    properties.setProperty("user", System.getenv("PGUSER"));
    properties.setProperty("password", System.getenv("PGPASSWORD"));
    properties.setProperty("options", System.getenv("PGOPTIONS"));
    properties.setProperty("sslmode", "verify-full");
    properties.setProperty("sslrootcert", System.getenv("PGSSLROOTCERT"));
    properties.setProperty("socketTimeout", "20");
    properties.putAll(others);
    String address = System.getenv("PGHOST") + ":" + System.getenv("PGPORT");
    return DriverManager.getConnection("jdbc:postgresql://" + address + "/" + System.getenv("PGDATABASE"), properties);
  }

  static Properties with(String name, String value) {
    Properties properties = new Properties();
    properties.setProperty(name, value);
    return properties;
  }

  static void expect(boolean isTrue, Object got) {
    if (!isTrue) throw new IllegalStateException("got " + got);
  }

  static void expectFault(String state, Check work) throws Exception {
    try {
      work.run(null);
    } catch (SQLException fault) {
      if (!state.equals(fault.getSQLState())) throw fault;
      return;
    }
    throw new IllegalStateException("no fault where " + state + " was expected");
  }

  static void execute(Connection connection, String... texts) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      for (String text : texts) statement.execute(text);
    }
  }

  static String ask(Connection connection, String text) throws SQLException {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
      rows.next();
      return rows.getString(1);
    }
  }

  /** A verifier of names that does not exist is only missed where names are verified. */
  static void verifiedName(Connection connection) throws Exception {
    expectFault("08006", none -> connect(with("sslhostnameverifier", "NoSuchClass")).close());
    expect(ask(connection, "select 1").equals("1"), "no answer");
  }

  static void unknownAuthority(Connection connection) throws Exception {
    expectFault("08006", none -> connect(with("sslfactory", "org.postgresql.ssl.DefaultJavaSSLFactory")).close());
  }

  static void wrongPassword(Connection connection) throws Exception {
    expectFault("28P01", none -> connect(with("password", "wrong")).close());
  }

  static void serverPrepared(Connection connection) throws Exception {
    try (PreparedStatement statement = connection.prepareStatement("select ?::int * 2")) {
      for (int number = 1; number <= 12; number++) {
        statement.setInt(1, number);
        try (ResultSet rows = statement.executeQuery()) {
          rows.next();
          expect(rows.getInt(1) == 2 * number, rows.getInt(1));
        }
      }
      expect(statement.unwrap(PGStatement.class).isUseServerPrepare(), "no prepared statement");
    }
  }

  static void keptStatements(Connection unused) throws Exception {
    Properties properties = with("prepareThreshold", "1");
    properties.setProperty("preparedStatementCacheQueries", "64");
    try (Connection connection = connect(properties)) {
      for (int round = 0; round < 3; round++) {
        for (int number = 0; number < 100; number++) {
          try (PreparedStatement statement = connection.prepareStatement("select ?::int + " + number)) {
            statement.setInt(1, 1);
            ResultSet rows = statement.executeQuery();
            rows.next();
            expect(rows.getInt(1) == number + 1, rows.getInt(1));
          }
        }
      }
    }
  }

  static void simpleProtocol(Connection unused) throws Exception {
    try (Connection connection = connect(with("preferQueryMode", "simple"));
        PreparedStatement statement = connection.prepareStatement("select ? || '!'")) {
      statement.setString(1, "it's");
      ResultSet rows = statement.executeQuery();
      rows.next();
      expect(rows.getString(1).equals("it's!"), rows.getString(1));
    }
  }

  static void types(Connection connection) throws Exception {
    String text = "select ?::numeric, ?::int[], ?::bytea, ?::jsonb, ?::text";
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      // The driver takes values in binary form from its fifth use on.
      for (int round = 0; round < 8; round++) {
        statement.setBigDecimal(1, new BigDecimal("12345678901234567890.5"));
        statement.setArray(2, connection.createArrayOf("int4", new Object[] {1, 2, 3}));
        statement.setBytes(3, new byte[] {0, -1});
        statement.setString(4, "{\"a\": \"ü\"}");
        statement.setString(5, null);
        ResultSet rows = statement.executeQuery();
        rows.next();
        expect(rows.getString(1).equals("12345678901234567890.5"), rows.getString(1));
        String numbers = Arrays.toString((Object[]) rows.getArray(2).getArray());
        expect(numbers.equals("[1, 2, 3]"), numbers);
        expect(rows.getBytes(3).length == 2 && rows.getBytes(3)[1] == -1, rows.getString(3));
        expect(rows.getString(4).equals("{\"a\": \"ü\"}"), rows.getString(4));
        expect(rows.getString(5) == null, rows.getString(5));
      }
    }
  }

  static void makeTable(Connection connection, String name, String columns) throws SQLException {
    execute(connection, "drop table if exists " + name, "create table " + name + " (" + columns + ")");
  }

  static void batch(Connection connection) throws Exception {
    makeTable(connection, "jdbc_batch", "a int");
    try (PreparedStatement statement = connection.prepareStatement("insert into jdbc_batch values (?)")) {
      for (int number = 0; number < 1000; number++) {
        statement.setInt(1, number);
        statement.addBatch();
      }
      expect(statement.executeBatch().length == 1000, "too few");
    }
    expect(ask(connection, "select sum(a) from jdbc_batch").equals("499500"), "a wrong sum");
  }

  static void faultyBatch(Connection connection) throws Exception {
    connection.setAutoCommit(false);
    try (PreparedStatement statement = connection.prepareStatement("select 1 / ?::int")) {
      for (int divisor : new int[] {1, 0, 1}) {
        statement.setInt(1, divisor);
        statement.addBatch();
      }
      statement.executeBatch();
      throw new IllegalStateException("no fault");
    } catch (BatchUpdateException fault) {
      connection.rollback();
    }
    expect(ask(connection, "select 1").equals("1"), "no answer");
    connection.commit();
  }

  static void cursor(Connection connection) throws Exception {
    connection.setAutoCommit(false);
    try (PreparedStatement statement = connection.prepareStatement("select g from generate_series(1, 1000) g")) {
      statement.setFetchSize(10);
      ResultSet rows = statement.executeQuery();
      int count = 0;
      while (rows.next()) count++;
      expect(count == 1000, count);
    }
    connection.commit();
  }

  static void generatedKeys(Connection connection) throws Exception {
    makeTable(connection, "jdbc_keys", "id int generated always as identity, a int");
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("insert into jdbc_keys (a) values (7)", Statement.RETURN_GENERATED_KEYS);
      ResultSet keys = statement.getGeneratedKeys();
      keys.next();
      expect(keys.getInt("id") == 1, keys.getInt("id"));
    }
  }

  static void copyBoth(Connection connection) throws Exception {
    makeTable(connection, "jdbc_copy", "a int, b text");
    StringBuilder lines = new StringBuilder();
    for (int number = 0; number < 10000; number++) lines.append(number).append("\ttext\n");
    byte[] data = lines.toString().getBytes(StandardCharsets.UTF_8);
    CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
    long count = copy.copyIn("copy jdbc_copy from stdin", new ByteArrayInputStream(data));
    expect(count == 10000, count);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    copy.copyOut("copy (select * from jdbc_copy order by a) to stdout", out);
    expect(Arrays.equals(out.toByteArray(), data), out.size() + " bytes");
  }

  static void savepoint(Connection connection) throws Exception {
    makeTable(connection, "jdbc_savepoint", "a int");
    connection.setAutoCommit(false);
    execute(connection, "insert into jdbc_savepoint values (1)");
    Savepoint savepoint = connection.setSavepoint("here");
    expectFault("22P02", none -> execute(connection, "insert into jdbc_savepoint values ('none')"));
    connection.rollback(savepoint);
    connection.commit();
    connection.setAutoCommit(true);
    String count = ask(connection, "select count(*) from jdbc_savepoint");
    expect(count.equals("1"), count);
  }

  static void largeRow(Connection connection) throws Exception {
    String text = "0123456789abcdef".repeat(1 << 19);
    try (PreparedStatement statement = connection.prepareStatement("select ?::text")) {
      statement.setString(1, text);
      ResultSet rows = statement.executeQuery();
      rows.next();
      expect(rows.getString(1).equals(text), rows.getString(1).length() + " characters");
    }
  }

  static void listen(Connection connection) throws Exception {
    execute(connection, "listen jdbc_channel");
    try (Connection other = connect(new Properties())) {
      execute(other, "notify jdbc_channel, 'hello'");
    }
    PGNotification[] got = connection.unwrap(PGConnection.class).getNotifications(3000);
    expect(got != null && got.length == 1 && got[0].getParameter().equals("hello"), "no notification");
  }

  static void cancel(Connection connection) throws Exception {
    try (Statement statement = connection.createStatement()) {
      CompletableFuture.runAsync(() -> {
        try {
          statement.cancel();
        } catch (SQLException fault) {
          throw new IllegalStateException(fault);
        }
      }, CompletableFuture.delayedExecutor(500, TimeUnit.MILLISECONDS));
      expectFault("57014", none -> statement.execute("select pg_sleep(10)"));
    }
    expect(ask(connection, "select 1").equals("1"), "no answer");
  }

  static void queryTimeout(Connection connection) throws Exception {
    try (Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      expectFault("57014", none -> statement.execute("select pg_sleep(10)"));
    }
  }

  /** In a transaction of its own each time, the driver prepares again by itself. */
  static void schemaChange(Connection unused) throws Exception {
    Properties properties = with("prepareThreshold", "1");
    properties.setProperty("autosave", "conservative");
    try (Connection connection = connect(properties)) {
      makeTable(connection, "jdbc_schema", "a int");
      execute(connection, "insert into jdbc_schema values (1)");
      connection.setAutoCommit(false);
      try (PreparedStatement statement = connection.prepareStatement("select * from jdbc_schema")) {
        for (int round = 0; round < 3; round++) statement.executeQuery().close();
        connection.commit();
        try (Connection other = connect(new Properties())) {
          execute(other, "alter table jdbc_schema add column b int default 7");
        }
        ResultSet rows = statement.executeQuery();
        rows.next();
        expect(rows.getInt("b") == 7, rows.getInt("b"));
      }
      connection.commit();
    }
  }

  static void metadata(Connection connection) throws Exception {
    makeTable(connection, "jdbc_metadata", "a int primary key, b text");
    try (ResultSet columns = connection.getMetaData().getColumns(null, "public", "jdbc_metadata", null)) {
      int count = 0;
      while (columns.next()) count++;
      expect(count == 2, count);
    }
  }
}
