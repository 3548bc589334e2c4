// server-everything takes a port but no address and would listen on every interface; its get-env tool shows its
// environment to whoever asks. Loaded before it with --require, this keeps every listener on 127.0.0.1.
"use strict";

const net = require("node:net");

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (port, ...rest) {
  const number = Number(port);
  if (!Number.isInteger(number)) {
    throw new TypeError("only listen(port, ...) is expected here");
  }
  const callbacks = rest.filter((part) => typeof part === "function");
  return listen.call(this, { port: number, host: "127.0.0.1" }, ...callbacks);
};
