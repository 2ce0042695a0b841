// Who is let in, and with which words the others are not.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { startHost } from '../support/host.mjs';
import { closeSockets, connect, newUser, refusal, TRANSPORTS } from '../support/sockets.mjs';
import { ed25519Pair, eddsa, hs256, jwk, nowSeconds, pem, rs256, rsaPair, unsigned } from '../support/tokens.mjs';

const INVALID = 'Invalid authentication token';

let keys;
before(async () => {
  keys = await mkdtemp(join(tmpdir(), 'pointwork-keys-'));
});
after(() => rm(keys, { recursive: true, force: true }));
afterEach(closeSockets);

async function keyFile(name, content) {
  const file = join(keys, name);
  await writeFile(file, content);
  return file;
}

for (const transport of TRANSPORTS) {
  describe(`refusals over ${transport}`, () => {
    let host;
    before(async () => (host = await startHost()));
    after(() => host.stop());

    test('a token is required', async () => {
      for (const auth of [{}, { token: '' }, { token: null }, { clientType: 'session-scoped' }]) {
        assert.equal(await refusal(host, { transport, auth }), 'Missing authentication token', JSON.stringify(auth));
      }
    });

    test('a session-scoped client names its session', async () => {
      const message = 'Session ID required for session-scoped clients';
      for (const sessionId of [undefined, '', null]) {
        const auth = { clientType: 'session-scoped', sessionId };
        assert.equal(await refusal(host, { transport, user: newUser(), auth }), message);
      }
    });

    test('a machine-scoped client names its machine', async () => {
      const message = 'Machine ID required for machine-scoped clients';
      for (const machineId of [undefined, '', null]) {
        const auth = { clientType: 'machine-scoped', machineId };
        assert.equal(await refusal(host, { transport, user: newUser(), auth }), message);
      }
    });

    test('a token is proven', async () => {
      const claims = { sub: newUser() };
      const good = hs256(host.secret, claims);
      const [header, , signature] = good.split('.');
      const other = Buffer.from(JSON.stringify({ sub: 'root' })).toString('base64url');
      const bad = {
        nonsense: 'nonsense',
        'two parts': 'a.b',
        'another secret': hs256('another', claims),
        'another user under the same signature': `${header}.${other}.${signature}`,
        'no signature': unsigned(claims),
        'no subject': hs256(host.secret, {}),
        'a key that is not configured': eddsa(ed25519Pair().privateKey, claims),
        'expired an hour ago': hs256(host.secret, { ...claims, exp: nowSeconds() - 3600 }),
      };
      for (const [what, token] of Object.entries(bad)) {
        assert.equal(await refusal(host, { transport, auth: { token } }), INVALID, what);
      }
      await connect(host, { transport, auth: { token: good } });
    });

    test('a token that has not expired and one without a time are good', async () => {
      const sub = newUser();
      await connect(host, { transport, auth: { token: hs256(host.secret, { sub, exp: nowSeconds() + 3600 }) } });
      await connect(host, { transport, auth: { token: hs256(host.secret, { sub }) } });
    });

    test('each client type is let in; a missing one is user-scoped', async () => {
      for (const auth of [
        {},
        { clientType: 'user-scoped' },
        { clientType: 'session-scoped', sessionId: 's' },
        { clientType: 'machine-scoped', machineId: 'm' },
      ]) {
        await connect(host, { transport, user: newUser(), auth });
      }
    });
  });
}

describe('public keys', () => {
  test('EdDSA with an issuer, as the field has it', async () => {
    const pair = ed25519Pair();
    const settings = { 'auth.public_key_file': await keyFile('ed25519.pem', pem(pair)), 'auth.issuer': 'handy' };
    const host = await startHost({ settings, hs256: false });
    try {
      const claims = { sub: newUser(), iss: 'handy' };
      await connect(host, { auth: { token: eddsa(pair.privateKey, claims) } });
      const bad = [
        eddsa(pair.privateKey, { sub: claims.sub }),
        eddsa(pair.privateKey, { ...claims, iss: 'other' }),
        eddsa(ed25519Pair().privateKey, claims),
        // The public key is public: it must never serve as a shared secret.
        hs256(pem(pair), claims),
      ];
      for (const token of bad) assert.equal(await refusal(host, { auth: { token } }), INVALID);
    } finally {
      closeSockets();
      await host.stop();
    }
  });

  test('RS256', async () => {
    const pair = rsaPair();
    const host = await startHost({ settings: { 'auth.public_key_file': await keyFile('rsa.pem', pem(pair)) }, hs256: false });
    try {
      const claims = { sub: newUser() };
      await connect(host, { auth: { token: rs256(pair.privateKey, claims) } });
      for (const token of [rs256(rsaPair().privateKey, claims), hs256(pem(pair), claims)]) {
        assert.equal(await refusal(host, { auth: { token } }), INVALID);
      }
    } finally {
      closeSockets();
      await host.stop();
    }
  });

  test('a key set, with a secret beside it', async () => {
    const [edwards, rsa] = [ed25519Pair(), rsaPair()];
    const set = { keys: [jwk(edwards, 'one', 'EdDSA'), jwk(rsa, 'two', 'RS256')] };
    const host = await startHost({ settings: { 'auth.jwks_file': await keyFile('jwks.json', JSON.stringify(set)) } });
    try {
      const claims = { sub: newUser() };
      for (const token of [
        eddsa(edwards.privateKey, claims, 'one'),
        rs256(rsa.privateKey, claims, 'two'),
        hs256(host.secret, claims),
      ]) {
        await connect(host, { auth: { token } });
      }
      for (const token of [
        eddsa(edwards.privateKey, claims, 'two'),
        rs256(rsa.privateKey, claims, 'one'),
        eddsa(edwards.privateKey, claims, 'three'),
        eddsa(ed25519Pair().privateKey, claims, 'one'),
      ]) {
        assert.equal(await refusal(host, { auth: { token } }), INVALID);
      }
    } finally {
      closeSockets();
      await host.stop();
    }
  });
});
