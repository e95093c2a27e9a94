"""In place of the suite's helpers: the facts that its tests ask for."""

from psycopg import pq

LINUX = True
# Latency is added to the loopback interface of the whole machine, with root's rights.
USE_SUDO = False
LIBPQ_SUPPORTS_PIPELINING = pq.version() >= 140000
# The size that PgBouncer has by default; messages around it are as good a test of any pooler.
PKT_BUF_SIZE = 4096
