// The host ends in order: clients are told, and its exit code is 0.
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { startHost } from './host.mjs';
import { closeSockets, connect, daemon, newUser, next, TRANSPORTS } from './sockets.mjs';
import { until } from './waiting.mjs';

afterEach(closeSockets);

for (const transport of TRANSPORTS) {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
    test(`${signal} with clients over ${transport}, one of them in a call`, async () => {
      const host = await startHost();
      try {
        const user = newUser();
        let asked = false;
        const silent = await daemon(host, { user, transport, methods: ['m'], handler: () => void (asked = true) });
        const others = await Promise.all(Array.from({ length: 10 }, () => connect(host, { user: newUser(), transport })));
        const caller = await connect(host, { user, transport });
        const answers = [];
        caller.emit('rpc-call', { method: 'm', params: 1 }, (answer) => answers.push(answer));
        await until(() => asked, 20_000, 'the request');
        const left = [silent, caller, ...others].map((socket) => next(socket, 'disconnect'));
        assert.equal(await host.end(signal), 0);
        await Promise.all(left);
        // Told why, or cut off; told twice, or that it went well, it must not be.
        assert.ok(answers.length <= 1 && answers.every(({ ok }) => ok === false), JSON.stringify(answers));
      } finally {
        await host.stop();
      }
    });
  }
}

describe('a host that cannot start', () => {
  test('says which setting is wrong', async () => {
    await assert.rejects(startHost({ settings: { 'rpc.no_such_setting': 1 } }), /no_such_setting/);
  });

  test('says that an address is taken', async () => {
    const host = await startHost();
    try {
      const { host: address } = new URL(host.url);
      await assert.rejects(startHost({ settings: { 'listen.address': address } }), new RegExp(address));
    } finally {
      await host.stop();
    }
  });
});
