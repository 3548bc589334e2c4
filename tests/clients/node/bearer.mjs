// Loaded before a program with --import: every HTTP request it makes carries the bearer of MCP_BEARER. For programs
// that know no option for a header of their own.
import http from "node:http";

import { getGlobalDispatcher, setGlobalDispatcher } from "undici";

const value = `Bearer ${process.env.MCP_BEARER}`;

function withBearer(headers) {
  return Array.isArray(headers) ? [...headers, "authorization", value] : { ...headers, authorization: value };
}

setGlobalDispatcher(
  getGlobalDispatcher().compose(
    (dispatch) => (options, handler) => dispatch({ ...options, headers: withBearer(options.headers) }, handler),
  ),
);

// Requests that are not made by fetch.
const request = http.request;
http.request = (options, ...more) => request({ ...options, headers: withBearer(options.headers) }, ...more);
