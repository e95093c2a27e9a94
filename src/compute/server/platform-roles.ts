/**
 * Roles of whatever runs a server, as a condition on `pg_authid`: the one that the server was made with, where that is
 * not Catnap's own, and the two of CloudNativePG, for its replicas and for its metrics. An owner's role of such a name
 * has other rights.
 */
export const isOfPlatform = `(oid = 10 OR NOT rolcreatedb AND (rolname = 'streaming_replica' AND rolreplication
  OR rolname = 'cnpg_metrics_exporter' AND rolcanlogin AND rolpassword IS NULL))`;

/** The same as a condition on `pg_stat_activity`: probes and metrics of the platform are nobody's work. */
export const isSessionOfPlatform = `coalesce(
  usesysid IN (SELECT oid FROM pg_authid WHERE ${isOfPlatform}), false)`;
