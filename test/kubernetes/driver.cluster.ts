/** The driver contract on the cluster that KUBECONFIG names: `npm run test:kubernetes`. */
import { describeDriverContract } from '../../src/compute/contract/contract.ts';
import { inabilities } from '../../src/compute/kubernetes/driver/inabilities.ts';
import { makeClusterSubject } from '../helpers/kubernetes-cluster/subject.ts';

describeDriverContract('the Kubernetes driver on a cluster', makeClusterSubject, inabilities);
