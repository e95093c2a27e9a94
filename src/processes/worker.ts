/** The worker process: runs operations and reconcilers. For what needs privileges it calls the parent. */

import { startDeliveries } from '../auth-provider/core/deliveries.ts';
import { openDriver } from '../compute/open-driver.ts';
import { expireLeases, newLease } from '../db/leases.ts';
import { Duty, ownDuty } from '../operations/duty.ts';
import { whileHeld } from '../operations/lease.ts';
import { OperationRunner } from '../operations/runner.ts';
import { authTransfers } from '../reconcilers/auth-transfers.ts';
import { makeAutoscaler } from '../reconcilers/autoscaler.ts';
import { branchSizes } from '../reconcilers/branch-sizes.ts';
import { deletedThings } from '../reconcilers/deleted-things.ts';
import { makeDiskRoom } from '../reconcilers/disk-room.ts';
import { expiredBranches } from '../reconcilers/expired-branches.ts';
import { expiredSnapshots } from '../reconcilers/expired-snapshots.ts';
import { makeHistory, makeNewHistories } from '../reconcilers/history.ts';
import { idleComputes } from '../reconcilers/idle-computes.ts';
import { looks } from '../reconcilers/looks.ts';
import { lostComputes } from '../reconcilers/lost-computes.ts';
import { makeMaintenance } from '../reconcilers/maintenance.ts';
import { providerLeftovers } from '../reconcilers/provider-leftovers.ts';
import { quotas } from '../reconcilers/quotas.ts';
import { startReconcilers } from '../reconcilers/reconciler.ts';
import { replicationSlots } from '../reconcilers/replication-slots.ts';
import { Rest } from '../reconcilers/rest.ts';
import { retention } from '../reconcilers/retention.ts';
import { makeSizeQuotas } from '../reconcilers/size-quotas.ts';
import { snapshotSchedules } from '../reconcilers/snapshot-schedules.ts';
import { staleReplicas } from '../reconcilers/stale-replicas.ts';
import { makeStoredSnapshots } from '../reconcilers/stored-snapshots.ts';
import { strayComputes } from '../reconcilers/stray-computes.ts';
import { makeUsage } from '../reconcilers/usage.ts';
import { UsersSync } from '../reconcilers/users-sync.ts';
import { UsersSyncElsewhere } from '../reconcilers/users-sync-elsewhere.ts';
import { makeWebhooks } from '../reconcilers/webhooks.ts';
import { makeProviders } from './auth-clients.ts';
import { authProviderParts } from './auth-provider.ts';
import { driverChannel } from './channel/driver-channel.ts';
import { openOwnConnection, type ProcessParts, type RunningProcess } from './parts.ts';

/** Most of a step's time is spent waiting for processes and disks, so more steps than cores are useful. */
const concurrency = 8;
/** Wakes that find a free lane whatever else is running; further wakes share the lanes with everything else. */
const urgentLanes = 2;

/** From the end of a rest until the queue is looked at, for an operation whose notification was lost. */
const lookAgainMs = 1_000;

export async function startWorker({ core, log, init, channel }: ProcessParts): Promise<RunningProcess> {
  const driver = await openDriver(core.config, driverChannel(channel));
  const providers = makeProviders(init);
  const urgent = Array.from({ length: urgentLanes }, () => openOwnConnection(init));
  const own = openOwnConnection(init);
  // Not at once: the notification of a wake has called its lane already, and the machine is the client's.
  const rest = new Rest({ core, log, onEnd: () => setTimeout(() => runner.lookAgain(), lookAgainMs).unref() });
  const isQuiet = () => rest.isQuiet;
  const { workerId, worksAlone } = init;
  const leases = { newLease: () => newLease(workerId) };
  const runner = new OperationRunner({ core, driver, providers, log, concurrency, urgent, own, isQuiet, ...leases });
  // The process in whose place this one runs has ended, and will not finish what it began.
  await expireLeases(core.database.sql, workerId);
  await runner.start();
  const usersSync = new UsersSync({ core, driver, log });
  await usersSync.start();
  const usersSyncElsewhere = new UsersSyncElsewhere({ core, providers, log });
  await usersSyncElsewhere.start();
  const all = [
    makeAutoscaler(),
    makeUsage(),
    idleComputes,
    lostComputes,
    strayComputes,
    staleReplicas,
    replicationSlots,
    expiredBranches,
    expiredSnapshots,
    snapshotSchedules,
    deletedThings,
    makeMaintenance(init.releases),
    branchSizes,
    makeHistory(),
    makeNewHistories(),
    makeStoredSnapshots(),
    looks,
    quotas,
    makeSizeQuotas(),
    makeDiskRoom(),
    makeWebhooks(),
    retention,
    providerLeftovers(providers),
    authTransfers(providers),
    usersSync.reconciler(),
    usersSyncElsewhere.reconciler(),
  ];
  await rest.start();
  const duty = worksAlone ? null : new Duty({ name: 'reconcilers', workerId, database: core.database, log });
  await duty?.start();
  const observing = duty === null ? driver : whileHeld(driver, duty.lease);
  const reconcilers = startReconcilers(all, { core, driver: observing, log }, rest, duty ?? ownDuty);
  const { smtpUrl, mailFrom } = core.config;
  const mail = smtpUrl === undefined ? null : { smtpUrl, from: mailFrom };
  const deliveries = await startDeliveries(authProviderParts(core, init), log, mail);
  return {
    stop: async () => {
      await rest.stop();
      await reconcilers.stop();
      await duty?.stop();
      await usersSyncElsewhere.stop();
      await usersSync.stop();
      await deliveries.stop();
      await runner.stop();
      await Promise.all([core.database, own, ...urgent].map((database) => database.close()));
    },
  };
}
