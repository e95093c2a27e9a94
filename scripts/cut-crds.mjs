/**
 * Cuts from CustomResourceDefinitions the part that Catnap uses, and writes it to
 * src/compute/kubernetes/objects/schemas.json, from which `npm run generate` makes types and against which tests check
 * every manifest, as closed objects: a field that is not named here is refused, whether the operator knows it or not.
 *
 * `node scripts/cut-crds.mjs FILE`, by hand, when Catnap begins to use a field or another version of the operator. FILE
 * holds the definitions of `sources` as one YAML stream.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { cutSchema } from './cut-schema.mjs';

const sources = [
  'clusters.postgresql.cnpg.io: github.com/cloudnative-pg/cloudnative-pg, v1.30.0, releases/cnpg-1.30.0.yaml, Apache-2.0',
  'volumesnapshots.snapshot.storage.k8s.io: github.com/kubernetes-csi/external-snapshotter, v8.6.0, client/config/crd, Apache-2.0',
];

/** Paths that are kept, with all that is below them. Items of a list need no word of their own. */
const kept = {
  'clusters.postgresql.cnpg.io': `
    spec.instances
    spec.imageName
    spec.inheritedMetadata
    spec.enablePDB
    spec.enableSuperuserAccess
    spec.smartShutdownTimeout
    spec.stopDelay
    spec.storage.size
    spec.storage.storageClass
    spec.resources.requests
    spec.resources.limits
    spec.probes.startup.periodSeconds
    spec.probes.liveness.periodSeconds
    spec.probes.readiness.periodSeconds
    spec.bootstrap.initdb.database
    spec.bootstrap.initdb.owner
    spec.bootstrap.initdb.secret
    spec.bootstrap.initdb.encoding
    spec.bootstrap.initdb.localeCollate
    spec.bootstrap.initdb.localeCType
    spec.bootstrap.initdb.localeProvider
    spec.bootstrap.initdb.builtinLocale
    spec.bootstrap.initdb.dataChecksums
    spec.bootstrap.initdb.postInitSQL
    spec.bootstrap.recovery.database
    spec.bootstrap.recovery.owner
    spec.bootstrap.recovery.secret
    spec.bootstrap.recovery.source
    spec.bootstrap.recovery.volumeSnapshots.storage
    spec.replica.enabled
    spec.replica.source
    spec.externalClusters.name
    spec.externalClusters.connectionParameters
    spec.externalClusters.sslKey
    spec.externalClusters.sslCert
    spec.externalClusters.sslRootCert
    spec.postgresql.parameters
    spec.postgresql.shared_preload_libraries
    spec.postgresql.pg_hba
    spec.postgresql.enableAlterSystem
    spec.managed.services.disabledDefaultServices
    spec.managed.services.additional.selectorType
    spec.managed.services.additional.serviceTemplate.metadata
    spec.managed.services.additional.serviceTemplate.spec.publishNotReadyAddresses
    status.conditions
    status.phase
    status.phaseReason
    status.instances
    status.readyInstances
    status.instancesStatus
    status.instanceNames
    status.currentPrimary
    status.targetPrimary
    status.timelineID
    status.healthyPVC
    status.image`,
  'volumesnapshots.snapshot.storage.k8s.io': `
    spec.source.persistentVolumeClaimName
    spec.volumeSnapshotClassName
    status.readyToUse
    status.restoreSize
    status.creationTime
    status.boundVolumeSnapshotContentName
    status.error`,
};

const [file] = process.argv.slice(2);
const definitions = parseAllDocuments(readFileSync(file, 'utf8'))
  .map((document) => document.toJSON())
  .filter((definition) => definition !== null && kept[definition.metadata.name] !== undefined);
const schemas = definitions.map(({ metadata, spec }) => {
  const version = spec.versions.find(({ storage }) => storage);
  const { spec: desired, status } = version.schema.openAPIV3Schema.properties;
  const parts = { type: 'object', properties: { spec: desired, status } };
  const { properties } = cutSchema(parts, kept[metadata.name].trim().split(/\s+/), spec.names.kind);
  return [spec.names.kind, { name: metadata.name, version: version.name, ...properties }];
});
const target = fileURLToPath(new URL('../src/compute/kubernetes/objects/schemas.json', import.meta.url));
writeFileSync(target, `${JSON.stringify({ sources, kinds: Object.fromEntries(schemas) }, null, 2)}\n`);
