/** The driver contract, against the double of a cluster; `driver.cluster.ts` is the same on a real one. */
import { describeDriverContract } from '../../src/compute/contract/contract.ts';
import { inabilities } from '../../src/compute/kubernetes/driver/inabilities.ts';
import { makeDoubleSubject } from '../helpers/kubernetes-double/subject.ts';

describeDriverContract('the Kubernetes driver over the double', () => makeDoubleSubject(17), inabilities);
