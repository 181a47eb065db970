// The names of Asio's coroutine type that the rest of the tree uses, and the one completion token.
//
// Rule (g++ 12 destroys some temporaries twice): inside `co_await` write only names, moves,
// literals and calls; build lambdas and option structs on the line above. A lint test holds it.
// Exceptions: an operation reports by error code (`kTuple`), never by throw.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace troupe::async {

namespace asio = boost::asio;

/// A coroutine that suspends on an Asio executor. It starts when awaited or spawned (scope.h).
template <class T>
using Task = asio::awaitable<T>;
using Executor = asio::any_io_executor;

/// `auto [error, n] = co_await socket.async_read_some(buffer, kTuple);`
inline constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

}  // namespace troupe::async
