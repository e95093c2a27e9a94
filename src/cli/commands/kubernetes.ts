/** `catnap kubernetes manifests`: prints what has to be applied to a cluster so that Catnap runs on it. */
import { type Command, InvalidArgumentError } from 'commander';
import { CliFailure, usageExitCode } from '../kit/failure.ts';
import type { ManifestOptions } from '../kit/parts.ts';
import type { RunCommand } from '../kit/session.ts';

export function addKubernetes(program: Command, run: RunCommand): void {
  const kubernetes = program.command('kubernetes').description('Catnap on a Kubernetes cluster');
  kubernetes
    .command('manifests')
    .description('print the manifests of an installation, for `kubectl apply -f -`')
    .requiredOption('--image <image>', 'image of Catnap, made from container/Containerfile')
    .requiredOption('--host <name>', 'where the API and the console are found')
    .requiredOption('--domain <name>', 'domain of the endpoints’ host names')
    .requiredOption('--postgres-images <images>', 'images of CloudNativePG, 17=…:17.6 and the like', parseImages)
    .option('--region <name>', 'region id that projects carry')
    .option('--namespace <name>', 'namespace of Catnap’s own pods')
    .option('--computes-namespace <name>', 'namespace of computes')
    .option('--apis <count>', 'pods that serve the API', Number)
    .option('--workers <count>', 'pods that carry out operations', Number)
    .option('--proxies <count>', 'pods that serve the database port', Number)
    .option('--secret <name>', 'Secret with database-url, secret-key and api-key')
    .option('--tls-secret <name>', 'Secret with the certificate of the database port')
    .option('--ingress-tls-secret <name>', 'Secret with the certificate of the API’s host')
    .option('--ingress-class <name>', 'class of the ingress')
    .option('--ingress-namespace <name>', 'namespace of the ingress controller')
    .option('--monitoring-namespace <name>', 'namespace from which metrics are read')
    .option('--operator-namespace <name>', 'namespace of CloudNativePG')
    .option('--storage-class <name>', 'storage of the branches; it must take snapshots')
    .option('--snapshot-class <name>', 'how those snapshots are taken')
    .option('--volume-size <size>', 'size of each branch’s volume')
    .option('--api-server <range>', 'addresses of the API server: computes then reach nothing else but names')
    .option('--drain-seconds <count>', 'how long a pod that stops may finish what clients have begun', Number)
    .action((options: ManifestOptions) =>
      run(async ({ parts }) => {
        const { wrong, text } = await parts.kubernetesManifests(options);
        if (wrong !== null) throw new CliFailure(`--${dashed(wrong.name)} must be ${wrong.form}`, usageExitCode);
        parts.stdout.write(text);
        return undefined;
      }),
    );
}

const dashed = (option: string) => option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

function parseImages(given: string): Readonly<Record<string, string>> {
  const pairs = given.split(',').map((pair) => /^(\d+)=(\S+)$/.exec(pair.trim()));
  if (pairs.some((pair) => pair === null)) {
    throw new InvalidArgumentError('It must be major=image, several separated by commas.');
  }
  return Object.fromEntries(pairs.map((pair) => [pair?.[1], pair?.[2]]));
}
