// What Pointwork adds to Socket.IO, for sockets of socket.io-client 4. Each addition is one line, and none needs another.
export { offsets } from './offsets.mjs';
export { resume } from './resume.mjs';
export { call, waiting } from './waiting.mjs';
