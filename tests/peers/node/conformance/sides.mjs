// The same verbs for a Rust and for a Node replica, so that each test runs in both directions. `to` says who is meant:
// `{nsp, rooms, except, from, local, volatile, timeout}`, as the Rust replica's commands have it.

export function rustSide(rust) {
  return {
    name: "Rust",
    emit: (to, event, ...args) => rust.tell("emit", { ...to, event, args }),
    emitMany: (count, event) => rust.tell("emit", { count, event, args: [] }),
    join: (to, names) => rust.tell("join", { ...to, names }),
    leave: (to, names) => rust.tell("leave", { ...to, names }),
    disconnect: (to) => rust.tell("disconnect", to),
    // The acks that came.
    acks: async (to, event, ...args) => (await rust.tell("ack", { ...to, event, args })).filter((ack) => !ack?.error),
    ackOfOne: (id, event, ...args) => rust.tell("first-ack", { rooms: [id], timeout: 2000, event, args }),
    servers: (nsp = "/") => rust.tell("servers", { nsp }),
  };
}

export function nodeSide(node) {
  const operator = ({ nsp = "/", rooms = [], except = [], from, local, volatile, timeout }) => {
    const namespace = node.io.of(nsp);
    let selected = (from ? namespace.sockets.get(from).broadcast : namespace).to(rooms).except(except);
    if (local) selected = selected.local;
    if (volatile) selected = selected.volatile;
    return timeout ? selected.timeout(timeout) : selected;
  };
  return {
    name: "Node",
    emit: async (to, event, ...args) => void operator(to).emit(event, ...args),
    emitMany: async (count, event) => {
      for (let number = 0; number < count; number++) node.io.emit(event, number);
    },
    join: async (to, names) => operator(to).socketsJoin(names),
    leave: async (to, names) => operator(to).socketsLeave(names),
    disconnect: async (to) => operator(to).disconnectSockets(true),
    acks: (to, event, ...args) =>
      operator(to).emitWithAck(event, ...args).catch((error) => {
        if (!error.responses) throw error;
        return error.responses;
      }),
    ackOfOne: async (id, event, ...args) => {
      const [socket] = await node.io.in(id).fetchSockets();
      return socket.timeout(2000).emitWithAck(event, ...args);
    },
    servers: (nsp = "/") => node.io.of(nsp).adapter.serverCount(),
  };
}
