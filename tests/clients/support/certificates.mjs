// Certificates of a test's own, made by openssl.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const openssl = async (...words) => await promisify(execFile)('openssl', words);

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-sha256', '-days', '2'];
const NAMES = 'subjectAltName=DNS:localhost,IP:127.0.0.1';

/** Vouches for others; its own certificate is in the file `ca`. */
export class Authority {
  async open() {
    this.folder = await mkdtemp(join(tmpdir(), 'pointwork-tls-'));
    this.ca = this.#file('ca.pem');
    await openssl('req', '-x509', ...KEY, '-subj', '/CN=ca', '-keyout', this.#file('ca.key'), '-out', this.ca);
    return this;
  }

  /** Writes NAME.pem and NAME.key, by renames; gives the files' paths. */
  async issue(name) {
    const [cert, key, request, extension] = ['pem', 'key', 'csr', 'ext'].map((end) => this.#file(`${name}.${end}`));
    await openssl('req', ...KEY.slice(0, -2), '-subj', `/CN=${name}`, '-keyout', `${key}.new`, '-out', request);
    await writeFile(extension, NAMES);
    const signer = ['-CA', this.ca, '-CAkey', this.#file('ca.key'), '-CAcreateserial', '-days', '2'];
    await openssl('x509', '-req', '-in', request, ...signer, '-extfile', extension, '-out', `${cert}.new`);
    await rename(`${key}.new`, key);
    await rename(`${cert}.new`, cert);
    return { cert, key };
  }

  /** What a client of TLS says: whom it believes, and what it shows. */
  async client(shown) {
    const ca = await readFile(this.ca);
    return shown ? { ca, cert: await readFile(shown.cert), key: await readFile(shown.key) } : { ca };
  }

  async close() {
    await rm(this.folder, { recursive: true, force: true });
  }

  #file(name) {
    return join(this.folder, name);
  }
}
